"""A Produce request that repeats itself: one topic, one partition, everything before the records known.

A producer's requests to a partition are alike byte for byte between the correlation id and the length of the
records: client id, transactional id, acks, time-out, topic and partition. One `startswith` then replaces
header parsing, decoding and lookups; a Struct compiled for the shape writes the answer. Layouts (n = up to
v8, f = v9 and later):

    n: ... i32 length | records                          f: ... uvarint length + 1 | records | 0 0 0 (tags of
    partition, topic, request)

A shape holds for one generation of the hub: leadership, topic, configuration or permissions changed, it is
dropped. Only what needs no wait has a shape: acks 0 and 1, and acks=all where the leader is the whole ISR.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from broker.handlers.produce_answers import NO_TIME, Partition, answer_template, refused, single_answer
from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import ATTRIBUTES_AT, CODEC_MASK, HEADER_SIZE, TRANSACTIONAL_BIT
from protocol.records.check import check_produced_batch, takes_long
from storage.errors import AppendRefused, StorageFailed
from storage.tail import BATCH_BYTES_MAX

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.shape import Shape
    from replication.partition import Partition as Replica

I32 = struct.Struct(">i")
FLEXIBLE_FROM = 9
TAGS = b"\0\0\0"
FLAGS_AT = ATTRIBUTES_AT + 1  # the low byte of a batch's attributes
QUICK_BYTES = 12_000  # a plain batch of no more bytes holds no more records than are checked at once


def _flexible_records(buf: bytearray, p: int, end: int) -> tuple[int, int]:
    """Where the records begin and how long they are, from their varint at `p`; length -1 if unusual."""
    length = shift = 0
    while p < end and shift <= 28:
        byte = buf[p]
        p += 1
        length |= (byte & 127) << shift
        if byte < 128:
            length -= 1
            usual = p + length + len(TAGS) == end and buf[end - len(TAGS) : end] == TAGS
            return p, length if usual else -1
        shift += 7
    return p, -1


class ProduceShape:
    """See the module. `before` are the bytes from 12 on, up to the length of the records."""

    __slots__ = (
        "_acks",
        "_flexible",
        "_has_start",
        "_head",
        "_index",
        "_leader_epoch",
        "_log",
        "_middle",
        "_name",
        "_pack",
        "_replica",
        "_rules",
        "_size",
        "_skip",
        "_tail",
        "_topic_id",
        "_version",
        "api",
        "before",
        "following",
    )

    def __init__(
        self, api: int, before: bytes, replica: Replica, acks: int, name: str, topic_id: bytes, index: int
    ) -> None:
        self.api, self.before = api, before
        self._skip = 12 + len(before)
        self._version = api & 0xFFFF
        self._flexible = self._version >= FLEXIBLE_FROM
        self._has_start = self._version >= 5
        self._replica, self._acks = replica, acks
        self._log, self._rules, self._leader_epoch = (
            replica.log,
            replica.log.rules(),
            replica.leader_epoch,
        )
        self._name, self._topic_id, self._index = name, topic_id, index
        self.following: Shape = self
        template = answer_template(self._version, name, topic_id, index)
        if template is None:
            raise ValueError(f"no template for {name}")
        self._pack, self._size, self._head, self._middle, self._tail = template

    def serve(
        self, connection: Connection, buf: bytearray, at: int, end: int, correlation_id: int, own: bool
    ) -> bool | None:
        p = at + self._skip
        if self._flexible:
            p, length = _flexible_records(buf, p, end)
        else:
            if p + 4 > end:
                return None
            length = I32.unpack_from(buf, p)[0]
            p += 4
            if p + length != end:
                return None
        if length < HEADER_SIZE:
            return None
        flags = buf[p + FLAGS_AT]
        if flags & TRANSACTIONAL_BIT:  # whether it may is the general way's to say
            return None
        log = self._log
        rules = self._rules
        if (length > QUICK_BYTES or flags & CODEC_MASK or not rules.plain) and takes_long(
            buf, p, length, rules
        ):
            return None
        turn = connection.hub.turn
        now_ms = turn.now_ms or turn.open()
        try:
            if own:
                checked = check_produced_batch(buf, p, length, rules, now_ms, self._version)
            elif length > BATCH_BYTES_MAX:
                pool = connection.hub.receiving
                spare = pool.take(length, length)
                spare[:length] = pool.shared_view[p : p + length]
                turn.keep(spare)
                checked = check_produced_batch(spare, 0, length, rules, now_ms, self._version)
            else:  # its own memory: the receive buffer is used again before the write
                checked = check_produced_batch(buf[p : p + length], 0, length, rules, now_ms, self._version)
            # Leadership and in-sync replicas were checked when the shape was made, for this generation.
            appended = log.append_as_leader(checked, self._leader_epoch, now_ms)
        except (InvalidRecords, AppendRefused, StorageFailed) as error:
            self._refuse(connection, correlation_id, refused(self._index, error.error, str(error)))
            return True
        out = connection.out
        if self._acks == 0:
            position = -1
        else:
            position = len(out)
            if appended[3] or appended[2] != NO_TIME:  # a duplicate, or LogAppendTime
                answer = self._unusual(correlation_id, appended.base_offset, appended.log_append_time_ms)
            elif self._has_start:
                answer = self._pack(
                    self._size,
                    correlation_id,
                    self._head,
                    appended[0],
                    self._middle,
                    log.start_offset,
                    self._tail,
                )
            else:
                answer = self._pack(self._size, correlation_id, self._head, appended[0], self._tail)
            out.append(answer)
        turn.entries.append((self._replica, log.failures, self, connection, position, correlation_id))
        if not connection.in_turn:
            connection.in_turn = True
            turn.connections.append(connection)
        return True

    def _unusual(self, correlation_id: int, base_offset: int, log_append_time_ms: int) -> bytes:
        answer = Partition(
            index=self._index,
            error_code=ErrorCode.NONE,
            base_offset=base_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=self._log.start_offset,
        )
        return single_answer(self._version, correlation_id, self._name, self._topic_id, answer)

    def _refuse(self, connection: Connection, correlation_id: int, answer: Partition) -> None:
        if self._acks == 0:
            connection.close(f"Produce with acks=0 to {self._replica} was refused: {answer.error_message}")
        else:
            frame = single_answer(self._version, correlation_id, self._name, self._topic_id, answer)
            connection.out.append(frame)

    def failed(
        self,
        replica: Replica,
        connection: Connection,
        position: int,
        correlation_id: int,
        error: StorageFailed,
    ) -> None:
        """See `Turn`: the write of what was staged failed."""
        answer = refused(self._index, error.error, str(error))
        if position < 0:
            connection.hub.loop.call_soon(
                connection.close, f"Produce with acks=0 to {replica} failed: {error}"
            )
        else:
            connection.out[position] = single_answer(
                self._version, correlation_id, self._name, self._topic_id, answer
            )
