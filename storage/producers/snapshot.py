"""`OFFSET.snapshot`, version 1: the producers' state as it was at that end offset (exclusive).

Layout: int16 version, uint32 CRC-32C of everything after it, int32 count, then 46 bytes a producer. Only the
last batch of a producer is stored, so after a restart one duplicate is recognised instead of five. No
timestamps of the file's own, no padding; a file that is short or whose CRC is wrong does not count.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from protocol.records.crc import crc32c
from storage.errors import CorruptCheckpoint
from storage.producers.entry import NO_SEQUENCE, ProducerEntry, retreat

VERSION = 1
_HEAD = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_FROM = 6
EMPTY_BYTES = _HEAD.size  # of a snapshot without producers


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    body = bytearray(_HEAD.size)
    count = 0
    for entry in entries:
        if entry.batches:
            _, last_sequence, last_offset, delta, _ = entry.batches[-1]
        else:
            last_sequence, last_offset, delta = NO_SEQUENCE, -1, 0
        body += _ENTRY.pack(
            entry.producer_id,
            entry.epoch,
            last_sequence,
            last_offset,
            delta,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.current_txn_first_offset,
        )
        count += 1
    _HEAD.pack_into(body, 0, VERSION, 0, count)
    _HEAD.pack_into(body, 0, VERSION, crc32c(memoryview(body)[_CRC_FROM:]), count)
    return bytes(body)


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """Raises CorruptCheckpoint for a short file, another version or a wrong CRC."""
    if len(data) < _HEAD.size:
        raise CorruptCheckpoint(f"a producer snapshot of {len(data)} bytes is too short")
    version, crc, count = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptCheckpoint(f"producer snapshot version {version}, known is {VERSION}")
    if crc != crc32c(memoryview(data)[_CRC_FROM:]):
        raise CorruptCheckpoint("the CRC of the producer snapshot does not match")
    if count < 0 or len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptCheckpoint(f"a producer snapshot of {count} entries cannot have {len(data)} bytes")
    entries = []
    for at in range(_HEAD.size, len(data), _ENTRY.size):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn = _ENTRY.unpack_from(
            data, at
        )
        batches = [(retreat(sequence, delta), sequence, offset, delta, timestamp)] if offset >= 0 else []
        entries.append(ProducerEntry(producer_id, epoch, batches, coordinator_epoch, timestamp, txn))
    return entries
