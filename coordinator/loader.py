"""Reading an internal topic's partition back into a shard: everything from log start to log end, in order.

A load may be a million records, so the walk over a batch is one loop without an object for each record, and
it pauses every few hundred records so that the loop is never held for long, be there one load or many. A
batch is decompressed as a whole; internal topics hold small ones.

Control batches count: an end marker decides about the records of its producer's transaction. Records of
magic 0 and 1 come from brokers older than transactions and are read too.

Bytes that are not those that were written end the load: state that is wrong, or has a hole, would be worse
than none. A record that does not parse although its batch is whole was written as it is, by somebody who is
no coordinator (clients called "__admin_client" may), and so was a batch that no request could fill. They have
no effect, or anybody could take a partition's keys from everybody for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from coordinator.ports import PartitionReader
from coordinator.shard import NOT_TRANSACTIONAL, Shard
from protocol.errors import ErrorCode, InvalidRecords, MalformedMessage, ProtocolViolation
from protocol.records.batch import ATTRIBUTES_AT, HEADER_SIZE, MAGIC_AT, BatchHeader, batches, read_header
from protocol.records.compression import decompress
from protocol.records.control import ABORT, COMMIT, read_end_marker
from protocol.records.crc import Buffer, crc32c
from protocol.records.legacy import legacy_records
from protocol.records.varints import BadVarint, read_varint

Turn: TypeAlias = Callable[[], Awaitable[None]]
"""Waits until the next piece of long work may be done."""

RECORDS_PER_TURN = 500
BYTES_PER_TURN = 256 * 1024
LOAD_BUFFER_BYTES = 5 * 1024 * 1024
"""Default of offsets.load.buffer.size and transaction.state.log.load.buffer.size."""


async def next_pass() -> None:
    """A turn where nobody else has long work to do."""
    await asyncio.sleep(0)


class Replay:
    """Feeds batches to a shard. `next_offset` is where reading goes on, `records` counts what was applied,
    `skipped` what did not parse; `reason` is that of the first one.
    """

    def __init__(self, shard: Shard, next_offset: int) -> None:
        self.shard = shard
        self.next_offset = next_offset
        self.records = 0
        self.skipped = 0
        self.reason = ""

    def steps(self, batches_read: Buffer) -> Iterator[None]:
        """Apply whole batches; each `next` does a bounded piece of the work.

        Raises InvalidRecords where bytes are not what was written.
        """
        records = read = 0
        for at, size in batches(batches_read):
            read += size
            if batches_read[at + MAGIC_AT] < 2:
                for record in legacy_records(batches_read, at):
                    if record.offset >= self.next_offset and record.key is not None:
                        self._apply(record.key, record.value, record.offset)
                        records += 1
                    self.next_offset = max(self.next_offset, record.offset + 1)
            else:
                head = read_header(batches_read, at)
                if head.crc != crc32c(memoryview(batches_read)[at + ATTRIBUTES_AT : at + size]):
                    raise InvalidRecords(
                        ErrorCode.CORRUPT_MESSAGE,
                        f"The batch at offset {head.base_offset} is damaged, its checksum is another",
                    )
                if head.is_control:
                    self._apply_marker(batches_read, at, head)
                else:
                    for count in self._apply_batch(batches_read, at, head):
                        records += count
                        if records >= RECORDS_PER_TURN:
                            self.records += records
                            records = read = 0
                            yield
                self.next_offset = max(self.next_offset, head.last_offset + 1)
            if records >= RECORDS_PER_TURN or read >= BYTES_PER_TURN:
                self.records += records
                records = read = 0
                yield
        self.records += records

    def _apply_marker(self, buf: Buffer, at: int, head: BatchHeader) -> None:
        if head.base_offset < self.next_offset:
            return
        marker = read_end_marker(buf, at)
        if marker is not None and marker.type in (ABORT, COMMIT):
            self.shard.replay_end_marker(marker.producer_id, marker.type == COMMIT)

    def _apply_batch(self, buf: Buffer, at: int, head: BatchHeader) -> Iterator[int]:
        """Apply the records at or after `next_offset`; yields how many were walked since the last time."""
        section: Buffer = memoryview(buf)[at + HEADER_SIZE : at + head.size]
        try:
            data = decompress(head.codec, section) if head.codec else bytes(section)
        except InvalidRecords as error:
            if error.error is not ErrorCode.MESSAGE_TOO_LARGE:
                raise
            self._skip(head.base_offset, error, head.record_count)
            return
        producer_id = head.producer_id if head.is_transactional else NOT_TRANSACTIONAL
        replay, skip, first, base = self.shard.replay, self._skip, self.next_offset, head.base_offset
        pos, left = 0, head.record_count
        try:
            while left > 0:
                turn = min(left, RECORDS_PER_TURN)
                for _ in range(turn):
                    pos, delta, key, value = read_fields(data, pos)
                    if key is not None and base + delta >= first:
                        try:
                            replay(key, value, base + delta, producer_id)
                        except MalformedMessage as error:
                            skip(base + delta, error)
                left -= turn
                yield turn
        except (BadVarint, IndexError) as error:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"A record does not parse: {error}") from None

    def _apply(self, key: bytes, value: bytes | None, offset: int) -> None:
        try:
            self.shard.replay(key, value, offset, NOT_TRANSACTIONAL)
        except MalformedMessage as error:
            self._skip(offset, error)

    def _skip(self, offset: int, error: ProtocolViolation | InvalidRecords, count: int = 1) -> None:
        self.skipped += count
        self.reason = self.reason or f"the first at offset {offset}: {error}"


def read_fields(data: bytes, at: int) -> tuple[int, int, bytes | None, bytes | None]:
    """(position of the next record, offset delta, key, value) of the record at `at`.

    Small numbers, which nearly all are, take one or two bytes and are read in place. Raises BadVarint,
    IndexError or InvalidRecords where the bytes are no record.
    """
    length = data[at]
    if length < 0x80:
        at += 1
        end = at + (length >> 1)
    else:
        length, at = read_varint(data, at, len(data))
        end = at + length
    if end > len(data):
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, "A record is longer than its batch")
    at += 1  # attributes
    while data[at] >= 0x80:  # timestamp delta
        at += 1
    at += 1
    raw = data[at]
    if raw < 0x80:
        delta = raw >> 1
        at += 1
    else:
        delta, at = read_varint(data, at, end)
    key, at = _bytes(data, at, end)
    value, at = _bytes(data, at, end)
    return end, delta, key, value


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    raw = data[at]
    if raw < 0x80:
        at += 1
        length = (raw >> 1) ^ -(raw & 1)
    else:
        length, at = read_varint(data, at, end)
    if length < 0:
        return None, at
    stop = at + length
    if stop > end:
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, "A field is longer than its record")
    return data[at:stop], stop


async def load(
    reader: PartitionReader,
    partition: int,
    shard: Shard,
    still_wanted: Callable[[], bool],
    buffer_bytes: int = LOAD_BUFFER_BYTES,
    turn: Turn = next_pass,
) -> Replay | None:
    """Replay a partition into a shard, a piece each time `turn` has come; None when it was no longer wanted
    half-way.

    Raises ReadFailed or InvalidRecords.
    """
    offset, end_offset = reader.bounds(partition)
    replay = Replay(shard, offset)
    while replay.next_offset < end_offset:
        before = replay.next_offset
        data = await reader.read(partition, before, buffer_bytes)
        await turn()
        if not still_wanted():
            return None
        if not data:
            break
        for _ in replay.steps(data):
            await turn()
            if not still_wanted():
                return None
        if replay.next_offset == before:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"No whole batch at offset {before}")
    return replay
