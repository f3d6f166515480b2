"""Batches that we build: byte for byte those of kafka-python and aiokafka, and read by them."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import Record, read_header, records
from protocol.records.builder import build_batch, stamp_crc, wrap_section
from protocol.records.crc import crc32c
from tests.unit.protocol.records.other_clients import MemoryRecords
from tests.unit.protocol.records.test_batch import NOW, ROWS, by_aiokafka, by_kafka_python, rows_of


def without_leader_epoch(batch):
    return bytes(batch[:12]) + bytes(batch[16:])


@pytest.mark.parametrize("write", [by_kafka_python, by_aiokafka])
def test_uncompressed_batch_then_the_bytes_of_other_clients(write):
    assert without_leader_epoch(build_batch(rows_of(ROWS))) == without_leader_epoch(write(0))


def test_producer_fields_then_the_bytes_of_kafka_python():
    fields = {"producer_id": 1 << 40, "producer_epoch": 7, "base_sequence": 123456}
    assert without_leader_epoch(build_batch(rows_of(ROWS), **fields)) == without_leader_epoch(
        by_kafka_python(0, **fields)
    )


@pytest.mark.parametrize("codec", range(5))
def test_batch_then_kafka_python_reads_it(codec):
    data = build_batch(rows_of(ROWS), codec=codec)
    batch = MemoryRecords(bytes(data)).next_batch()
    assert batch.validate_crc()
    found = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert found == rows_of(ROWS)


@pytest.mark.parametrize("codec", range(5))
def test_attributes_and_offsets_then_in_the_header(codec):
    data = build_batch(rows_of(ROWS), base_offset=40, codec=codec, leader_epoch=9, transactional=True)
    head = read_header(data)
    assert (head.base_offset, head.last_offset, head.leader_epoch) == (40, 43, 9)
    assert head.attributes == codec | 0x10
    assert [record.offset for record in records(data)] == [40, 41, 42, 43]
    assert head.crc == crc32c(memoryview(data)[21:])


def test_kept_offsets_then_gaps_stay():
    rows = [Record(offset, NOW, b"k", b"v") for offset in (50, 53, 59)]
    data = build_batch(rows, base_offset=50, keep_offsets=True)
    assert [record.offset for record in records(data)] == [50, 53, 59]
    assert (read_header(data).record_count, read_header(data).last_offset) == (3, 59)


def test_no_records_then_empty_batch():
    head = read_header(build_batch([]))
    assert (head.record_count, head.last_offset_delta, head.base_timestamp, head.max_timestamp) == (
        0,
        -1,
        -1,
        -1,
    )


def test_wrapped_section_and_new_checksum_then_consistent():
    section = bytes(build_batch(rows_of(ROWS))[61:])
    data = wrap_section(
        section, attributes=0, last_offset_delta=3, base_timestamp=NOW, max_timestamp=NOW + 9000, count=4
    )
    assert without_leader_epoch(data) == without_leader_epoch(build_batch(rows_of(ROWS)))
    struct.pack_into(">q", data, 35, 5)
    stamp_crc(data, 0, len(data))
    assert MemoryRecords(bytes(data)).next_batch().validate_crc()


maybe = st.one_of(st.none(), st.binary(max_size=200))
row = st.builds(
    lambda time, key, value, headers: (time, key, value, headers),
    st.integers(-(1 << 62), 1 << 62),
    maybe,
    maybe,
    st.lists(st.tuples(st.text(max_size=9), maybe), max_size=3),
)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(row, max_size=8), st.integers(0, 4))
def test_any_records_then_read_back_equal(rows, codec):
    assert list(records(build_batch(rows_of(rows, 7), base_offset=7, codec=codec))) == rows_of(rows, 7)
