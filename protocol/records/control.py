"""Control batches: the markers that end transactions.

A control batch has attribute bits 4 and 5 set, no sequence, is never compressed and holds one record: key =
i16 version, i16 type; value of an end marker = i16 version, i32 coordinator epoch. Types 2 to 6 belong to
Kafka's metadata log; readers must pass over types they do not know, and read higher versions as version 0.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, Record, read_header, records
from protocol.records.builder import append_record, wrap_section
from protocol.records.crc import Buffer

ABORT, COMMIT = 0, 1
_KEY, _VALUE = Struct(">hh"), Struct(">hi")


class EndMarker(NamedTuple):
    """The end of a producer's transaction on a partition."""

    type: int  # ABORT, COMMIT, or a type that belongs to others
    coordinator_epoch: int  # -1 where the type has none
    producer_id: int
    producer_epoch: int
    offset: int
    timestamp: int


def build_end_marker(
    commit: bool,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The batch that commits or aborts the producer's transaction."""
    key = _KEY.pack(0, COMMIT if commit else ABORT)
    section = bytearray()
    append_record(section, Record(base_offset, timestamp, key, _VALUE.pack(0, coordinator_epoch)), 0, 0)
    return wrap_section(
        section,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        count=1,
    )


def read_end_marker(buf: Buffer, at: int = 0) -> EndMarker | None:
    """The marker in the control batch at `at`; None for one that the cleaner emptied."""
    header = read_header(buf, at)
    if not header.is_control:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, "The batch is no control batch")
    for record in records(buf, at):
        key, value = record.key or b"", record.value or b""
        if len(key) < _KEY.size or _KEY.unpack_from(key)[0] < 0:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Invalid control record key of {len(key)} bytes")
        kind = _KEY.unpack_from(key)[1]
        epoch = -1
        if kind in (ABORT, COMMIT):
            if len(value) < _VALUE.size or _VALUE.unpack_from(value)[0] < 0:
                raise InvalidRecords(ErrorCode.INVALID_RECORD, "Invalid value of an end transaction marker")
            epoch = _VALUE.unpack_from(value)[1]
        return EndMarker(
            kind, epoch, header.producer_id, header.producer_epoch, record.offset, record.timestamp
        )
    return None
