"""Transaction markers: bytes, and reading those of others."""

import struct

import pytest

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import Record, read_header, records
from protocol.records.builder import build_batch, stamp_crc
from protocol.records.control import ABORT, COMMIT, EndMarker, build_end_marker, read_end_marker
from tests.unit.protocol.records.other_clients import MemoryRecords

NOW = 1_700_000_000_000


def marker(commit=True):
    return build_end_marker(
        commit,
        producer_id=9,
        producer_epoch=2,
        coordinator_epoch=31,
        timestamp=NOW,
        base_offset=70,
        leader_epoch=4,
    )


@pytest.mark.parametrize(("commit", "kind"), [(True, COMMIT), (False, ABORT)])
def test_marker_then_layout_of_kafka_and_read_back(commit, kind):
    data = marker(commit)
    head = read_header(data)
    assert head.attributes == 0x30
    assert (head.base_sequence, head.record_count, head.last_offset, head.leader_epoch) == (-1, 1, 70, 4)
    record = next(records(data))
    assert record.key == struct.pack(">hh", 0, kind)
    assert record.value == struct.pack(">hi", 0, 31)
    assert read_end_marker(data) == EndMarker(kind, 31, 9, 2, 70, NOW)


def test_marker_then_kafka_python_sees_a_control_batch():
    batch = MemoryRecords(bytes(marker())).next_batch()
    assert batch.validate_crc()
    assert batch.is_control_batch
    assert batch.is_transactional


def control(key, value):
    data = build_batch([Record(0, NOW, key, value)], transactional=True)
    struct.pack_into(">h", data, 21, 0x30)
    stamp_crc(data, 0, len(data))
    return data


def test_types_of_others_then_passed_through_and_later_versions_read_as_0():
    assert read_end_marker(control(struct.pack(">hh", 0, 2), b"anything")).type == 2
    assert (
        read_end_marker(control(struct.pack(">hhi", 5, 1, 0), struct.pack(">hiq", 3, 8, 1))).coordinator_epoch
        == 8
    )


def test_emptied_control_batch_then_none():
    data = build_batch([])
    struct.pack_into(">h", data, 21, 0x30)
    assert read_end_marker(data) is None


@pytest.mark.parametrize(
    "data",
    [
        build_batch([Record(0, NOW, b"k", b"v")]),
        control(None, b""),
        control(b"\0", b""),
        control(b"\xff\xff\0\1", b"\0\0\0\0\0\0"),
        control(b"\0\0\0\1", None),
        control(b"\0\0\0\1", b"\0\0\0"),
        control(b"\0\0\0\0", b"\xff\xff\0\0\0\0"),
    ],
)
def test_broken_marker_then_invalid_record(data):
    with pytest.raises(InvalidRecords) as caught:
        read_end_marker(data)
    assert caught.value.error is ErrorCode.INVALID_RECORD
