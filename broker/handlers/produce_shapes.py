"""A Produce request that repeats itself: one topic, one partition, everything before the records known.

A producer's requests to a partition are alike byte for byte between the correlation id and the length of the records: client
id, transactional id, acks, time-out, topic and partition. One `startswith` then replaces header parsing, decoding
and lookups; a Struct compiled for the shape writes the answer. Layouts (n = up to v8, f = v9 and later):

    n: ... i32 length | records                          f: ... uvarint length + 1 | records | 0 0 0 (tags of partition, topic, request)

A shape holds for one generation of the hub: leadership, topic, configuration or permissions changed, it is dropped.
Only what needs no wait has a shape: acks 0 and 1, and acks=all where the leader is the whole ISR.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from broker.handlers.produce_answers import NO_TIME, Partition, answer_template, refused, single_answer
from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import HEADER_SIZE
from protocol.records.check import check_produced_batch, takes_long
from storage.errors import AppendRefused, StorageFailed

if TYPE_CHECKING:
    from broker.net.connection import Connection, Shape
    from replication.partition import Partition as Replica

I32 = struct.Struct(">i")
FLEXIBLE_FROM = 9
TAGS = b"\0\0\0"


class ProduceShape:
    """See the module. `before` are the bytes from 12 on, up to the length of the records."""

    __slots__ = (
        "_acks", "_flexible", "_head", "_index", "_middle", "_name", "_pack", "_replica", "_size", "_skip", "_tail",
        "_topic_id", "_version", "api", "before", "following",
    )  # fmt: skip

    def __init__(
        self, api: int, before: bytes, replica: Replica, acks: int, name: str, topic_id: bytes, index: int
    ) -> None:
        self.api, self.before = api, before
        self._skip = 12 + len(before)
        self._version = api & 0xFFFF
        self._flexible = self._version >= FLEXIBLE_FROM
        self._replica, self._acks = replica, acks
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
            if p + 5 > end:
                return None
            length = buf[p]
            p += 1
            if length > 127:
                length &= 127
                shift = 7
                while True:
                    byte = buf[p]
                    p += 1
                    length |= (byte & 127) << shift
                    if byte < 128:
                        break
                    shift += 7
                    if shift > 28:
                        return None
            length -= 1
            if p + length + 3 != end or buf[end - 3 : end] != TAGS:
                return None
        else:
            if p + 4 > end:
                return None
            length = I32.unpack_from(buf, p)[0]
            p += 4
            if p + length != end:
                return None
        if length < HEADER_SIZE:
            return None
        replica = self._replica
        rules = replica.log.config.rules()
        if takes_long(buf, p, length, rules):
            return None
        turn = connection.hub.turn
        now_ms = turn.now_ms or turn.open()
        try:
            if own:
                checked = check_produced_batch(buf, p, length, rules, now_ms, self._version)
            else:  # its own memory: the receive buffer is used again before the write
                checked = check_produced_batch(
                    buf[p : p + length], 0, length, rules, now_ms, self._version
                )
            appended = replica.append(checked, self._acks, now_ms)
        except (InvalidRecords, AppendRefused, StorageFailed) as error:
            self._refuse(connection, correlation_id, refused(self._index, error.error, str(error)))
            return True
        if self._acks == 0:
            turn.add(replica, self, connection, -1, correlation_id)
            return True
        out = connection.out
        if appended.duplicate or appended.log_append_time_ms != NO_TIME:
            answer = self._unusual(correlation_id, appended.base_offset, appended.log_append_time_ms)
        elif self._version >= 5:
            answer = self._pack(
                self._size, correlation_id, self._head, appended.base_offset, self._middle,
                replica.log.start_offset, self._tail,
            )  # fmt: skip
        else:
            answer = self._pack(self._size, correlation_id, self._head, appended.base_offset, self._tail)
        turn.add(replica, self, connection, len(out), correlation_id)
        out.append(answer)
        return True

    def _unusual(self, correlation_id: int, base_offset: int, log_append_time_ms: int) -> bytes:
        answer = Partition(
            index=self._index,
            error_code=ErrorCode.NONE,
            base_offset=base_offset,
            log_append_time_ms=log_append_time_ms,
            log_start_offset=self._replica.log.start_offset,
        )
        return single_answer(self._version, correlation_id, self._name, self._topic_id, answer)

    def _refuse(self, connection: Connection, correlation_id: int, answer: Partition) -> None:
        if self._acks == 0:
            connection.close(f"Produce with acks=0 to {self._replica} was refused: {answer.error_message}")
        else:
            frame = single_answer(self._version, correlation_id, self._name, self._topic_id, answer)
            connection.out.append(frame)

    def failed(
        self, replica: Replica, connection: Connection, position: int, correlation_id: int, error: StorageFailed
    ) -> None:
        """See `Turn`: the write of what was staged failed."""
        answer = refused(self._index, error.error, str(error))
        if position < 0:
            connection.shut_after_turn = True
        else:
            connection.out[position] = single_answer(
                self._version, correlation_id, self._name, self._topic_id, answer
            )
