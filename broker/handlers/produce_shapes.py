"""A Produce request that repeats itself: one topic, everything before the partition's index known.

A producer's requests to a topic are alike byte for byte between the correlation id and the index of the
partition: client id, transactional id, acks, time-out, topic. One `startswith` then replaces header parsing,
decoding and lookups; a Struct compiled for the shape writes the answer. A producer to thousands of partitions
has one shape for each topic, which keeps what it knows of the partition that was written last. Layouts
(n = up to v8, f = v9 and later):

    n: ... i32 index | i32 length | records              f: ... i32 index | uvarint length + 1 | records |
    0 0 0 (tags of partition, topic, request)

A shape holds for one generation of the hub: leadership, topic, configuration or permissions changed, it is
dropped. acks 0 and 1, and acks=all where no other replica exists, are answered with the turn; otherwise
acks=all is a promise (`broker.net.promises`), which is kept when the in-sync replicas have the batch.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.handlers.produce_answers import (
    NO_ERROR,
    NO_TIME,
    Partition,
    answer_template,
    refused,
    single_answer,
)
from broker.net.promises import Promise, Refused
from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import ATTRIBUTES_AT, CODEC_MASK, HEADER_SIZE, TRANSACTIONAL_BIT
from protocol.records.check import check_produced_batch, takes_long
from replication.partition import ACKS_ALL
from storage.errors import AppendRefused, StorageFailed
from storage.tail import BATCH_BYTES_MAX

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.shape import Shape
    from protocol.records.rules import BatchRules
    from replication.partition import Partition as Replica
    from storage.partition_log import PartitionLog

I32 = struct.Struct(">i")
FLEXIBLE_FROM = 9
TAGS = b"\0\0\0"
NO_POSITION = -1  # the answer is not among those of the turn
NO_INDEX = 1 << 31  # what no request can name
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


def _spared(connection: Connection, at: int, length: int) -> bytearray:
    """Bytes of the shared receive buffer, in a buffer that stays until the turn's write is over."""
    pool = connection.hub.receiving
    spare = pool.take(length, length)
    spare[:length] = pool.shared_view[at : at + length]
    connection.hub.turn.keep(spare)
    return spare


class ProduceShape:
    """See the module. `before` are the bytes from 12 on, up to the partition's index.

    `find` gives the replica of an index, None where it is not here.
    """

    __slots__ = (
        "_acks",
        "_find",
        "_flexible",
        "_has_start",
        "_head",
        "_index",
        "_leader_epoch",
        "_log",
        "_middle",
        "_min_isr",
        "_name",
        "_pack",
        "_replica",
        "_replicated",
        "_rules",
        "_size",
        "_skip",
        "_start",
        "_tail",
        "_timeout_ms",
        "_topic_id",
        "_version",
        "api",
        "before",
        "following",
        "promises",
    )

    _replica: Replica
    _log: PartitionLog
    _rules: BatchRules

    def __init__(
        self,
        api: int,
        before: bytes,
        find: Callable[[int], Replica | None],
        acks: int,
        name: str,
        topic_id: bytes,
        timeout_ms: int = 0,
    ) -> None:
        """`timeout_ms`: how long acks=all may wait for replicas."""
        self.api, self.before = api, before
        self._skip = 12 + len(before)
        self._version = api & 0xFFFF
        self._flexible = self._version >= FLEXIBLE_FROM
        self._has_start = self._version >= 5
        self._find, self._acks, self._timeout_ms = find, acks, timeout_ms
        self.promises = acks == ACKS_ALL
        self._replicated, self._min_isr = False, 1
        self._name, self._topic_id = name, topic_id
        self._index, self._leader_epoch = NO_INDEX, -1
        self.following: Shape = self
        template = answer_template(self._version, name, topic_id)
        if template is None:
            raise ValueError(f"no template for {name}")
        self._pack, self._size, self._head, self._middle, self._tail = template
        self._start = template.start

    def _turn_to(self, index: int) -> bool:
        """Let `serve` append to that partition; False where the general way has to say why not."""
        replica = self._find(index)
        if replica is None or not replica.is_leader:
            return False
        if self._acks == ACKS_ALL:
            self._replicated, self._min_isr = not replica.alone, replica.min_isr
            if self._min_isr != 1 and not self._replicated:
                return False
        elif replica.fenced:
            return False
        self._index = index
        self._replica, self._log, self._leader_epoch = replica, replica.log, replica.leader_epoch
        self._rules = replica.log.rules()
        self._head = self._start + I32.pack(index) + NO_ERROR
        return True

    def serve(
        self, connection: Connection, buf: bytearray, at: int, end: int, correlation_id: int, own: bool
    ) -> bool | None:
        p = at + self._skip
        if p + 4 > end:
            return None
        index = I32.unpack_from(buf, p)[0]
        if index != self._index and not self._turn_to(index):
            return None
        p += 4
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
        if self.promises and (  # the general way refuses it; or its answer would pass those that are owed
            len(self._replica.isr) < self._min_isr if self._replicated else connection.promised
        ):
            return None
        log, rules = self._log, self._rules
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
                spare = _spared(connection, p, length)
                checked = check_produced_batch(spare, 0, length, rules, now_ms, self._version)
            else:  # its own memory: the receive buffer is used again before the write
                checked = check_produced_batch(buf[p : p + length], 0, length, rules, now_ms, self._version)
            appended = log.append_as_leader(checked, self._leader_epoch, now_ms)  # we lead: see `_turn_to`
        except (InvalidRecords, AppendRefused, StorageFailed) as error:
            self._refuse(connection, correlation_id, refused(self._index, error.error, str(error)))
            return True
        if self._acks == 0:
            position = -1
        else:
            if appended[3] or appended[2] != NO_TIME:  # a duplicate, or LogAppendTime
                answer = self._unusual(correlation_id, appended.base_offset, appended.log_append_time_ms)
            elif self._has_start:
                answer = self._pack(
                    self._size, correlation_id, self._head, appended[0],
                    self._middle, log.start_offset, self._tail,
                )  # fmt: skip
            else:
                answer = self._pack(self._size, correlation_id, self._head, appended[0], self._tail)
            if self._replicated:
                self._promise(connection, correlation_id, answer, appended.last_offset)
                return True
            position = len(connection.out)
            connection.out.append(answer)
        turn.entries.append((self._replica, log.failures, self, connection, position, correlation_id))
        if not connection.in_turn:
            connection.in_turn = True
            turn.connections.append(connection)
        return True

    def _promise(self, connection: Connection, correlation_id: int, answer: bytes, last_offset: int) -> None:
        replica = self._replica
        promise = Promise(connection, self, replica, last_offset, correlation_id, answer, self._timeout_ms)
        connection.hub.turn.add(replica, promise, connection, NO_POSITION, correlation_id)
        if last_offset < replica.log.high_watermark:  # a duplicate of what is committed
            promise.wake()

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
            if connection.promised:
                connection.promised.append(Refused(frame))
            else:
                connection.out.append(frame)

    def refusal(self, index: int, correlation_id: int, error: ErrorCode, message: str | None) -> bytes:
        """See `Refusing`."""
        answer = refused(index, error, message)
        return single_answer(self._version, correlation_id, self._name, self._topic_id, answer)

    def failed(
        self,
        replica: Replica,
        connection: Connection,
        position: int,
        correlation_id: int,
        error: StorageFailed,
    ) -> None:
        """See `Turn`: the write of what was staged failed."""
        if position < 0:
            connection.hub.loop.call_soon(
                connection.close, f"Produce with acks=0 to {replica} failed: {error}"
            )
        else:
            connection.out[position] = self.refusal(replica.index, correlation_id, error.error, str(error))
