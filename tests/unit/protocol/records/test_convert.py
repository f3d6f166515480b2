"""Down-conversion: what readers of old Fetch versions get, read by kafka-python."""

import struct

import pytest

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import MAGIC_AT, Record, batches, records
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from protocol.records.convert import down_convert
from protocol.records.legacy import build_message_set, legacy_records
from tests.unit.protocol.records.other_clients import MemoryRecords

NOW = 1_700_000_000_000


def rows(first, count=5, headers=(("h", b"x"),)):
    return [Record(first + i, NOW + i, b"k%d" % i, b"v" * i, headers) for i in range(count)]


def plain(these, magic):
    return [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in these]


def read_all(data):
    return [record for at, size in batches(data) for record in legacy_records(data, at, size)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_batches_then_messages_of_the_old_magic_with_codec_kept_and_headers_dropped(magic, codec):
    first, second = rows(10), rows(30)
    stored = build_batch(first, base_offset=10, codec=codec) + build_batch(
        second, base_offset=30, codec=codec
    )
    out = down_convert(stored, magic)
    assert read_all(out) == plain(first + second, magic)
    entries = list(batches(out))
    assert len(entries) == (2 if codec else 10)
    assert all(out[at + MAGIC_AT] == magic and out[at + 17] & 7 == codec for at, _ in entries)


@pytest.mark.parametrize("codec", [0, 1])
def test_converted_then_kafka_python_reads_it(codec):
    source = MemoryRecords(bytes(down_convert(build_batch(rows(7), base_offset=7, codec=codec), 1)))
    found = []
    while (batch := source.next_batch()) is not None:
        assert batch.validate_crc()
        found += [Record(r.offset, r.timestamp, r.key, r.value) for r in batch]
    assert found == plain(rows(7), 1)


def test_offsets_below_the_fetch_offset_then_left_out_of_uncompressed_output_only():
    for codec, kept in ((0, [12, 13, 14]), (1, [10, 11, 12, 13, 14])):
        out = down_convert(build_batch(rows(10), base_offset=10, codec=codec), 1, 12)
        assert [record.offset for record in read_all(out)] == kept
    assert down_convert(build_batch(rows(10), base_offset=10), 1, 99) == b""


def test_control_batch_then_dropped():
    marker = build_end_marker(
        True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW, base_offset=5
    )
    out = down_convert(build_batch(rows(0)) + marker + build_batch(rows(6), base_offset=6), 1)
    assert [record.offset for record in read_all(out)] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]


def test_log_append_time_then_type_and_time_kept():
    for codec in (0, 2):
        out = down_convert(build_batch(rows(0), codec=codec, log_append_time_ms=NOW + 99), 1)
        assert {record.timestamp for record in read_all(out)} == {NOW + 99}
        assert out[17] & 8


def test_zstd_then_unsupported_compression_type():
    with pytest.raises(InvalidRecords) as caught:
        down_convert(build_batch(rows(0), codec=4), 1)
    assert caught.value.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_old_messages_then_kept_or_converted_to_the_older_magic():
    these = plain(rows(4), 1)
    for codec in (0, 1):
        stored = build_message_set(these, 1, codec)
        assert down_convert(stored, 1) == stored
        assert read_all(down_convert(stored, 0)) == plain(these, 0)
        oldest = build_message_set(these, 0, codec)
        assert down_convert(oldest, 0) == down_convert(oldest, 1) == oldest


def test_cut_batch_at_the_end_and_empty_batch_then_left_out():
    whole = build_batch(rows(0))
    empty = build_batch([], base_offset=5)
    assert down_convert(whole + empty + whole[:-1], 1) == down_convert(whole, 1)
    assert down_convert(b"zz" + whole + b"zz", 1, 0, 2, 2 + len(whole)) == down_convert(whole, 1)
    assert list(records(empty)) == []


def test_damaged_batch_then_invalid_records():
    data = build_batch(rows(0))
    struct.pack_into(">i", data, 57, 3)
    with pytest.raises(InvalidRecords):
        down_convert(data, 1)


def test_zstd_after_others_then_those_alone():
    before = build_batch(rows(0), codec=1)
    zstd = build_batch(rows(6), base_offset=6, codec=4)
    assert down_convert(before + zstd + before, 1) == down_convert(before, 1)
