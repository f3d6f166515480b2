"""Produce (0), versions 0-13: append batches to partitions.

v0-2 message sets of the old formats are converted, v3 transactional id and exactly one batch of the new
format a partition, v7 zstd, v9 flexible, v13 topic ids. acks 0: no answer, the connection closes if anything
is refused. acks 1: answered when the leader has written, acks -1: when every in-sync replica has.

Requests that repeat are served by `ProduceShape`; this is the general way: decode, find each partition, check
each batch, stage it, answer after the turn's write. Partitions are independent, some may fail. A request with
a batch that is long to check waits, with its connection, for a thread.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker.handlers.big_produce import BigProduce
from broker.handlers.produce_answers import Partition, Topic, refused
from broker.handlers.produce_request import (
    ADMITTED_LATER,
    BATCHES_FROM,
    IN_THREAD,
    Check,
    Entry,
    ProduceRequestState,
    busy,
    check,
    check_or_error,
    taken,
)
from broker.handlers.produce_shapes import FLEXIBLE_FROM, TAGS, ProduceShape
from broker.handlers.produce_transactions import admit
from broker.net.frame_size import GENERAL_BYTES_MAX
from broker.net.hub import log
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, MalformedMessage, ManyElements
from protocol.headers import RequestHeader
from protocol.primitives import uvarint
from protocol.records.check import takes_long
from protocol.records.check_legacy import SET_SIZE_RATIO
from replication.delayed_produce import ProducePurgatory
from replication.partition import Partition as Replica
from runtime.blocking import BlockingBusy

if TYPE_CHECKING:
    from broker.context import BrokerContext
    from broker.net.connection import Connection

IDS_FROM: Final = 13
FEW_ELEMENTS: Final = 2000  # topics and partitions that are served in one go
INLINE_SET_BYTES: Final = 1024  # larger sets of the old formats are converted in a thread
ADMIN_CLIENT: Final = "__admin_client"
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
TRANSACTIONAL_BIT: Final = 0x10


class ProduceHandler:
    """Serves Produce on raw frames."""

    min_version = 0
    max_version = 13

    __slots__ = ("_purgatory", "context")

    def __init__(self, context: BrokerContext, purgatory: ProducePurgatory) -> None:
        self.context, self._purgatory = context, purgatory

    def serve(
        self,
        connection: Connection,
        header: RequestHeader,
        buf: bytearray,
        at: int,
        body: int,
        end: int,
        own: bool,
    ) -> bool:
        """See `HotHandler`."""
        version = header.api_version
        if end - body > GENERAL_BYTES_MAX:  # there is no copy of so large a body
            request, _ = m.ProduceRequest.decode(version, buf, body, end)
        else:
            try:
                request, _ = m.ProduceRequest.decode(version, buf, body, end, FEW_ELEMENTS)
            except ManyElements:
                return self._serve_big(connection, header, bytearray(memoryview(buf)[body:end]))
            except MalformedMessage:  # or names longer than any topic's, which count for many elements each
                request, _ = m.ProduceRequest.decode(version, buf, body, end)
        state = self.state(connection, header, request)
        slow = False
        for topic in request.topic_data:
            answers: list[Partition] = []
            state.response.responses.append(
                Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
            for wanted in topic.partition_data:
                entry = self.entry(request, header, topic, wanted)
                if isinstance(entry, Entry):
                    state.entries.append(entry)
                    answers.append(entry.answer)
                    records, rules = entry.records, entry.replica.log.rules()
                    slow = slow or (
                        takes_long(records, 0, len(records), rules)
                        if version >= BATCHES_FROM
                        else INLINE_SET_BYTES < len(records) <= SET_SIZE_RATIO * rules.max_message_bytes
                    )
                else:
                    answers.append(entry)
        if request.transactional_id is not None and any(entry.transactional for entry in state.entries):
            self._admit(connection, header, request.transactional_id, state, slow)
            return True
        if slow:
            self._check_apart(connection, header, state)
            return True
        self._append(connection, version, state)
        if len(state.entries) == 1 and version >= BATCHES_FROM:
            self._remember(connection, header, request, state, buf, at, end)
        return True

    def _append(self, connection: Connection, version: int, state: ProduceRequestState) -> None:
        now_ms = connection.hub.turn.open()
        for entry in state.entries:
            state.stage(entry, lambda entry=entry: check(entry, version, now_ms), now_ms)  # type: ignore[misc]
        state.settle()

    def _admit(
        self,
        connection: Connection,
        header: RequestHeader,
        transactional_id: str,
        state: ProduceRequestState,
        slow: bool,
    ) -> None:
        """Have the batches admitted by the transaction's coordinator, then go on; at once where that is
        known.
        """
        waits = False

        def go_on(admitted: list[Entry]) -> None:
            state.entries = admitted
            if slow:
                self._check_apart(connection, header, state)
            else:
                self._append(connection, header.api_version, state)

        def go_on_later(admitted: list[Entry]) -> None:
            try:
                go_on(admitted)
            except BaseException:
                connection.shut()
                raise
            finally:
                if not connection.closed and connection.waiting is ADMITTED_LATER:
                    connection.resume()

        def done(admitted: list[Entry]) -> None:
            if waits:
                connection.hub.loop.call_soon(go_on_later, admitted)
            else:
                now.append(admitted)

        now: list[list[Entry]] = []
        admit(self.context, transactional_id, header.api_version, state.entries, done)
        if now:
            go_on(now[0])
            return
        waits = True
        connection.waiting = ADMITTED_LATER
        for entry in state.entries:
            entry.records = bytearray(entry.records)  # the receive buffer is used again meanwhile

    def _serve_big(self, connection: Connection, header: RequestHeader, data: bytearray) -> bool:
        if not self.context.big_bodies.enter(connection):
            return False
        BigProduce(self, connection, header).serve(data)
        return True

    def state(
        self, connection: Connection, header: RequestHeader, request: m.ProduceRequest
    ) -> ProduceRequestState:
        """A request that has begun."""
        return ProduceRequestState(connection, header, self._purgatory, request.acks, request.timeout_ms)

    def entry(
        self,
        request: m.ProduceRequest,
        header: RequestHeader,
        topic: m.ProduceRequest.TopicProduceData,
        wanted: m.ProduceRequest.PartitionProduceData,
    ) -> Entry | Partition:
        """What is to be appended, or the refusal (protocol.md 3.4, points 1 to 4)."""
        index = wanted.index
        if request.acks not in (-1, 0, 1):
            return refused(index, ErrorCode.INVALID_REQUIRED_ACKS, f"acks={request.acks} is not -1, 0 or 1")
        replica = self._find(header.api_version, topic, index)
        if isinstance(replica, ErrorCode):
            return refused(index, replica, replica.message)
        if replica.topic in INTERNAL_TOPICS and header.client_id != ADMIN_CLIENT:
            return refused(
                index,
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"the topic {replica.topic} is internal to the broker",
            )
        records = wanted.records
        if records is None:
            return refused(index, ErrorCode.INVALID_REQUEST, "the request has no records for this partition")
        view = memoryview(records)
        if (
            header.api_version >= BATCHES_FROM
            and len(view) > 22
            and view[16] == 2
            and view[22] & TRANSACTIONAL_BIT
        ):
            if request.transactional_id is None:
                code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                return refused(index, code, "a transactional batch needs a transactional id in the request")
            return Entry(replica, Partition(index=index), view, transactional=True)
        return Entry(replica, Partition(index=index), view)

    def _find(
        self, version: int, topic: m.ProduceRequest.TopicProduceData, index: int
    ) -> Replica | ErrorCode:
        replicas = self.context.replicas
        if version < IDS_FROM:
            return replicas.find(topic.name, index)
        found = replicas.get_by_id(topic.topic_id, index)
        return found if found is not None else replicas.error_of_id(topic.topic_id, index)

    # -- long checks

    def _check_apart(self, connection: Connection, header: RequestHeader, state: ProduceRequestState) -> None:
        for entry in state.entries:
            entry.records = bytearray(entry.records)  # the receive buffer is used again meanwhile
        connection.waiting = IN_THREAD
        connection.hub.env.tasks.spawn(
            f"produce checks of {connection.peer}",
            self._check_in_thread(connection, header.api_version, state),
        )

    async def _check_in_thread(
        self, connection: Connection, version: int, state: ProduceRequestState
    ) -> None:
        """Check all batches of the request in threads, one after the other, then stage them in one go."""
        hub = connection.hub
        now_ms = hub.env.clock.now_ms()
        checks: list[Check] = []
        try:
            for entry in state.entries:
                try:
                    checked = await hub.env.blocking.submit(check_or_error, entry, version, now_ms)
                except BlockingBusy:
                    checks.append(lambda entry=entry: busy(entry))  # type: ignore[misc]
                    continue
                checks.append(lambda checked=checked: taken(checked))  # type: ignore[misc]
            now_ms = hub.turn.open()
            for entry, check in zip(state.entries, checks, strict=True):
                state.stage(entry, check, now_ms)
            state.settle()
        except BaseException:
            connection.shut()  # an answer is missing: nothing behind it may be answered
            raise
        finally:
            if not connection.closed and connection.waiting is IN_THREAD:
                connection.resume()

    # -- the memo

    def _remember(
        self,
        connection: Connection,
        header: RequestHeader,
        request: m.ProduceRequest,
        state: ProduceRequestState,
        buf: bytearray,
        at: int,
        end: int,
    ) -> None:
        """Keep the shape of a request with one partition, if nothing in it needs a look next time; it serves
        all partitions of the topic.
        """
        topic = request.topic_data[0]
        if len(request.topic_data) != 1 or len(topic.partition_data) != 1:
            return
        length = len(topic.partition_data[0].records or b"")
        if request.transactional_id is not None:
            return
        if header.api_version >= FLEXIBLE_FROM:
            varint = uvarint(length + 1)
            start = end - len(TAGS) - length
            if bytes(buf[start - len(varint) : start]) != varint or buf[end - len(TAGS) : end] != TAGS:
                return
            start -= len(varint)
        else:
            start = end - length - 4
            if bytes(buf[start : start + 4]) != length.to_bytes(4, "big"):
                return
        api = ApiKey.PRODUCE << 16 | header.api_version
        before = bytes(buf[at + 12 : start - 4])
        replicas, name, topic_id = self.context.replicas, topic.name, topic.topic_id
        find = partial(replicas.get, name) if name else partial(replicas.get_by_id, topic_id)
        try:
            shape = ProduceShape(api, before, find, request.acks, name, topic_id, request.timeout_ms)
        except ValueError:
            log.debug("No shape for %s", state.entries[0].replica)
            return
        connection.remember(shape)
