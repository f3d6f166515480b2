"""Times of single batches by example; the property test lives beside the check (test_check.py)."""

import struct

import pytest

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import Record, read_header, records
from protocol.records.builder import build_batch, stamp_crc
from protocol.records.rules import BatchRules
from protocol.records.times import settle_times
from protocol.records.walk import walk_records

NOW = 1_790_000_000_000
HOUR = 3_600_000


def settle(data, **settings):
    rules = BatchRules(**settings)
    high, _ = walk_records(data, 61, len(data), read_header(data).record_count)
    return settle_times(data, 0, len(data), rules, NOW, high, False)


def batch(*times):
    return build_batch(Record(i, time, b"k", b"v") for i, time in enumerate(times))


def errors_of(data, **settings):
    with pytest.raises(InvalidRecords) as caught:
        settle(data, **settings)
    assert caught.value.error is ErrorCode.INVALID_TIMESTAMP
    return [index for index, _ in caught.value.record_errors]


def test_right_header_then_bytes_untouched():
    data = batch(NOW, NOW - 500, NOW + 20)
    before = bytes(data)
    assert settle(data) == (0, NOW + 20, -1)
    assert data == before


@pytest.mark.parametrize("claimed", [-1, 0, NOW, NOW + 50, 1 << 62])
def test_wrong_max_timestamp_then_put_right_with_checksum(claimed):
    data = batch(NOW, NOW - 500, NOW + 20)
    right = bytes(data)
    struct.pack_into(">q", data, 35, claimed)
    stamp_crc(data, 0, len(data))
    assert settle(data).max_timestamp == NOW + 20
    assert data == right


def test_farthest_time_is_earlier_then_largest_still_found():
    data = batch(NOW, NOW - 9000, NOW + 7)
    assert settle(data).max_timestamp == NOW + 7


def test_limits_then_inclusive():
    assert settle(batch(NOW + HOUR, NOW - 1000), timestamp_before_max_ms=1000).max_timestamp == NOW + HOUR
    assert errors_of(batch(NOW, NOW + HOUR + 1, NOW)) == [1]
    assert errors_of(batch(NOW - 1001, NOW, NOW - 1001), timestamp_before_max_ms=1000) == [0, 2]


def test_times_of_minus_one_then_exempt():
    data = batch(-1, -1)
    assert settle(data, timestamp_before_max_ms=0, timestamp_after_max_ms=0).max_timestamp == -1


def test_times_below_minus_one_then_max_timestamp_is_minus_one():
    assert settle(batch(-7, -9)).max_timestamp == -1


def test_message_of_refused_time_then_names_the_range():
    with pytest.raises(InvalidRecords) as caught:
        settle(batch(5), timestamp_before_max_ms=1000)
    assert f"within [{NOW - 1000}, {NOW + HOUR}]" in caught.value.record_errors[0][1]


def test_log_append_time_then_bit_and_now_and_the_rest_untouched():
    data = batch(NOW - 5, -1, NOW + 10**12)
    before = bytes(data)
    assert settle(data, log_append_time=True) == (8, NOW, NOW)
    assert data[61:] == before[61:]
    assert data[27:35] == before[27:35]
    assert [record.timestamp for record in records(data)] == [NOW] * 3
    checksum = data[17:21]
    stamp_crc(data, 0, len(data))
    assert data[17:21] == checksum


def claiming(time):
    return build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW, b"k", b"v")], log_append_time_ms=time)


def test_claimed_log_append_time_then_refused_or_dropped():
    assert errors_of(claiming(NOW), log_append_time=True) == [0, 1]
    assert errors_of(claiming(-1)) == [0, 1]
    assert errors_of(claiming(NOW + HOUR + 1)) == [0, 1]
    data = claiming(NOW - 77)
    assert settle(data) == (0, NOW - 77, -1)
    assert not read_header(data).is_log_append_time


def test_changed_header_then_unknown_bits_are_dropped():
    data = batch(NOW)
    struct.pack_into(">hi", data, 21, 0x7F90, 0)
    struct.pack_into(">q", data, 35, 5)
    assert settle(data).attributes == 0x10
