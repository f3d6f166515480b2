"""The batch header, finding batches, reading records; against kafka-python and aiokafka."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import (
    HEADER_SIZE,
    Record,
    batches,
    next_size,
    read_header,
    records,
    wrap64,
)
from protocol.records.builder import build_batch, stamp_crc
from tests.unit.protocol.records.other_clients import aio_batches
from tests.unit.protocol.records.other_clients import batches as kafka_batches

NOW = 1_700_000_000_000
ROWS = [
    (NOW, b"key", b"value", []),
    (NOW + 3, None, b"", [("name", b"x"), ("other", None)]),
    (NOW - 70, b"", None, [("", b"")]),
    (NOW + 9000, b"k" * 100, b"v" * 9000, [("long" * 30, b"y" * 300)]),
]


def by_kafka_python(codec, **options):
    producer = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1} | options
    builder = kafka_batches.DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, batch_size=1 << 20, **producer
    )
    for index, (timestamp, key, value, headers) in enumerate(ROWS):
        builder.append(index, timestamp, key, value, headers)
    return bytes(builder.build())


def by_aiokafka(codec):
    builder = aio_batches.DefaultRecordBatchBuilder(
        2, codec, 0, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=1 << 20
    )
    for index, (timestamp, key, value, headers) in enumerate(ROWS):
        builder.append(index, timestamp, key, value, headers)
    return bytes(builder.build())


def rows_of(data, base=0):
    return [Record(base + i, t, k, v, tuple(h)) for i, (t, k, v, h) in enumerate(data)]


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("write", [by_kafka_python, by_aiokafka])
def test_batch_of_another_client_then_records_equal(codec, write):
    data = write(codec)
    assert list(records(data)) == rows_of(ROWS)
    assert list(records(b"before" + data + b"behind", 6)) == rows_of(ROWS)
    head = read_header(data)
    assert (head.codec, head.size, head.record_count, head.last_offset) == (codec, len(data), 4, 3)
    assert (head.base_timestamp, head.max_timestamp) == (NOW, NOW + 9000)


def test_header_fields_then_as_written():
    data = by_kafka_python(0, producer_id=77, producer_epoch=5, base_sequence=(1 << 31) - 2)
    head = read_header(data)
    assert (head.producer_id, head.producer_epoch, head.base_sequence) == (77, 5, (1 << 31) - 2)
    assert head.last_sequence == 1  # two steps to 2^31-1 and on from 0
    assert (head.magic, head.leader_epoch, head.is_transactional, head.is_control) == (
        2,
        head.leader_epoch,
        False,
        False,
    )
    assert read_header(by_kafka_python(0)).last_sequence == -1


def test_log_append_time_then_one_time_for_all_records():
    data = build_batch(rows_of(ROWS), log_append_time_ms=NOW + 55)
    assert {record.timestamp for record in records(data)} == {NOW + 55}
    assert read_header(data).is_log_append_time


def test_batches_in_a_row_then_each_whole_one_found():
    one, two = build_batch(rows_of(ROWS)), build_batch(rows_of(ROWS[:1]), codec=1)
    both = bytes(one + two)
    expected = [(0, len(one)), (len(one), len(two))]
    assert list(batches(both)) == expected
    for cut in (1, 11, 13, 16, 20, len(two) - 1):
        assert list(batches(both + two[:cut])) == expected
    assert list(batches(both, len(one))) == expected[1:]
    assert list(batches(both, 0, len(both) - 1)) == expected[:1]
    assert list(batches(b"")) == []


@pytest.mark.parametrize(
    ("prefix", "error"),
    [
        (struct.pack(">qi", 0, 13), "minimum record overhead"),
        (struct.pack(">qi", 0, -1), "minimum record overhead"),
        (struct.pack(">qiib", 0, 50, 0, 3), "Invalid magic found in record: 3"),
        (struct.pack(">qiib", 0, 50, 0, -1), "Invalid magic found in record: -1"),
    ],
)
def test_prefix_of_no_batch_then_corrupt_message(prefix, error):
    data = prefix + bytes(100)
    with pytest.raises(InvalidRecords, match=error) as caught:
        next_size(data, 0, len(data))
    assert caught.value.error is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("count", [0, 3, 5, (1 << 31) - 1])
def test_count_that_is_not_the_records_then_invalid_record(count):
    data = build_batch(rows_of(ROWS))
    struct.pack_into(">i", data, 57, count)
    with pytest.raises(InvalidRecords) as caught:
        list(records(data))
    assert caught.value.error is ErrorCode.INVALID_RECORD


def test_batch_longer_than_the_buffer_then_corrupt_message():
    data = bytes(build_batch(rows_of(ROWS)))
    for broken in (data[:-1], data[:8] + struct.pack(">i", 40) + data[12:]):
        with pytest.raises(InvalidRecords) as caught:
            list(records(broken))
        assert caught.value.error is ErrorCode.CORRUPT_MESSAGE


def test_header_key_that_is_no_utf8_then_replacement_mark():
    data = build_batch([Record(0, NOW, None, None, (("ab", b""),))])
    at = data.index(b"ab")
    data[at] = 0xFF
    stamp_crc(data, 0, len(data))
    assert next(records(data)).headers == (("\ufffdb", b""),)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 7), st.integers(-1, 9))
def test_random_section_then_records_or_invalid_records(section, attributes, count):
    head = struct.pack(
        ">qiibIhiqqqhii", 0, len(section) + 49, 0, 2, 0, attributes, 0, NOW, NOW, -1, -1, -1, count
    )
    assert len(head) == HEADER_SIZE
    with contextlib.suppress(InvalidRecords):
        assert len(list(records(head + section))) == max(count, 0)


def test_wrap64_then_as_in_java():
    assert wrap64(5) == 5
    assert wrap64(1 << 63) == -(1 << 63)
    assert wrap64(-(1 << 63) - 1) == (1 << 63) - 1
