"""Produce (0), versions 0-13: append batches to partitions.

v0-2 message sets of the old formats are converted, v3 transactional id and exactly one batch of the new
format a partition, v7 zstd, v9 flexible, v13 topic ids. acks 0: no answer, the connection closes if anything
is refused. acks 1: answered when the leader has written, acks -1: when every in-sync replica has.

Requests that repeat are served by `ProduceShape`; this is the general way: decode, find each partition, check
each batch, stage it, answer after the turn's write. Partitions are independent, some may fail. A request with
a batch that is long to check waits, with its connection, for a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.handlers.produce_answers import NO_TIME, Partition, Topic, refused
from broker.handlers.produce_shapes import FLEXIBLE_FROM, TAGS, ProduceShape
from broker.net.answers import frame_answer
from broker.net.hub import log
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, InvalidRecords
from protocol.headers import RequestHeader
from protocol.primitives import uvarint
from protocol.records.check import Checked, check_produced_batch, takes_long
from protocol.records.check_legacy import SET_SIZE_RATIO, check_produced_set
from replication.delayed_produce import ProducePurgatory
from replication.partition import ACKS_ALL
from replication.partition import Partition as Replica
from replication.produce import ProduceResult
from runtime.blocking import BlockingBusy
from storage.errors import AppendRefused, StorageFailed

if TYPE_CHECKING:
    from broker.context import BrokerContext
    from broker.net.connection import Connection

BATCHES_FROM: Final = 3
IDS_FROM: Final = 13
INLINE_SET_BYTES: Final = 1024  # larger sets of the old formats are converted in a thread
ADMIN_CLIENT: Final = "__admin_client"
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
TRANSACTIONAL_BIT: Final = 0x10

Check = Callable[[], Checked | None]


@dataclass(slots=True)
class Entry:
    """One partition of a request that is to be appended to; `answer` stands in the response already."""

    replica: Replica
    answer: Partition
    records: memoryview | bytearray
    last_offset: int = -1


class ProduceRequestState:
    """One request on its way: what was staged for it, and the place of its answer."""

    __slots__ = (
        "_connection",
        "_finished",
        "_header",
        "_position",
        "_purgatory",
        "acks",
        "entries",
        "response",
        "staged",
        "timeout_ms",
    )

    def __init__(
        self,
        connection: Connection,
        header: RequestHeader,
        purgatory: ProducePurgatory,
        acks: int,
        timeout_ms: int,
    ) -> None:
        self._connection, self._header, self._purgatory = connection, header, purgatory
        self.acks, self.timeout_ms = acks, timeout_ms
        self.response = m.ProduceResponse()
        self.entries: list[Entry] = []
        self.staged: list[Entry] = []
        self._position = -1
        self._finished = False

    def stage(self, entry: Entry, check: Check, now_ms: int) -> None:
        """Check and stage one batch; a refusal goes into the answer."""
        answer = entry.answer
        try:
            checked = check()
            if checked is None:  # v0-2 with no whole message: nothing to do, and no error
                self._refuse(answer, ErrorCode.NONE, None)
                return
            appended = entry.replica.append(checked, self.acks, now_ms)
        except InvalidRecords as error:
            self._refuse(answer, error.error, str(error))
            answer.record_errors = [
                m.ProduceResponse.BatchIndexAndErrorMessage(
                    batch_index=index, batch_index_error_message=message
                )
                for index, message in error.record_errors
            ]
            return
        except (AppendRefused, StorageFailed) as error:
            self._refuse(answer, error.error, str(error))
            return
        answer.base_offset = appended.base_offset
        answer.log_append_time_ms = appended.log_append_time_ms
        answer.log_start_offset = entry.replica.log.start_offset
        entry.last_offset = appended.last_offset
        self.staged.append(entry)

    @staticmethod
    def _refuse(answer: Partition, error: ErrorCode, message: str | None) -> None:
        answer.error_code = error
        answer.error_message = message if error != ErrorCode.KAFKA_STORAGE_ERROR else None
        answer.base_offset, answer.log_append_time_ms, answer.log_start_offset = -1, NO_TIME, -1

    def settle(self) -> None:
        """Everything that can be staged is: answer after the turn's write."""
        connection = self._connection
        if not self.staged:
            self._finish()
            return
        turn = connection.hub.turn
        if self.acks:
            self._position = len(connection.out)
            connection.out.append(b"")
        for number, entry in enumerate(self.staged):
            turn.add(entry.replica, self, connection, number, self._header.correlation_id)
        if self.acks == ACKS_ALL and not all(entry.replica.alone for entry in self.staged):
            connection.waiting = REPLICATING  # nothing behind it may be answered before
            turn.after_write(self._await_replicas)
        else:
            turn.after_write(self._finish)

    def failed(
        self,
        replica: Replica,
        connection: Connection,
        position: int,
        correlation_id: int,
        error: StorageFailed,
    ) -> None:
        """See `Turn`: the write of what was staged failed, or its sync after the answer was prepared."""
        self._refuse(self.staged[position].answer, error.error, str(error))
        if self._finished:
            self._finish()

    def _await_replicas(self) -> None:
        """Written; acks=all still needs the other in-sync replicas."""
        results = []
        for entry in self.staged:
            result = ProduceResult(entry.replica)
            result.last_offset = entry.last_offset
            result.error = ErrorCode(entry.answer.error_code)
            results.append(result)
        self._purgatory.wait(results, self.timeout_ms, self._replicated)

    def _replicated(self, results: list[ProduceResult]) -> None:
        for entry, result in zip(self.staged, results, strict=True):
            if result.error != entry.answer.error_code:
                self._refuse(entry.answer, result.error, result.message or result.error.message)
        connection = self._connection
        if not connection.closed:
            self._finish()
            if connection.in_turn:
                connection.waiting = None
                connection.hub.loop.call_soon(connection.go_on)
            else:
                connection.resume()

    def _finish(self) -> None:
        self._finished = True
        connection = self._connection
        if self.acks == 0:
            for topic in self.response.responses:
                for answer in topic.partition_responses:
                    if answer.error_code:
                        reason = f"Produce with acks=0 failed: {answer.error_message or answer.error_code!r}"
                        connection.hub.loop.call_soon(connection.close, reason)
                        return
            return
        header = self._header
        frame = frame_answer(ApiKey.PRODUCE, header.api_version, header.correlation_id, self.response)
        if self._position < 0:
            connection.out.append(frame)
        else:
            connection.out[self._position] = frame


class _Working:
    """The connection waits for a thread that checks its batches, or for replicas."""

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        """The work goes on; its batches are appended though nobody hears of it, as after any lost answer."""


IN_THREAD = _Working()
REPLICATING = _Working()


class ProduceHandler:
    """Serves Produce on raw frames."""

    min_version = 0
    max_version = 13

    __slots__ = ("_context", "_purgatory")

    def __init__(self, context: BrokerContext, purgatory: ProducePurgatory) -> None:
        self._context, self._purgatory = context, purgatory

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
        request, _ = m.ProduceRequest.decode(version, buf, body, end)
        state = ProduceRequestState(connection, header, self._purgatory, request.acks, request.timeout_ms)
        slow = False
        for topic in request.topic_data:
            answers: list[Partition] = []
            state.response.responses.append(
                Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
            for wanted in topic.partition_data:
                entry = self._entry(state, request, header, topic, wanted)
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
        if slow:
            self._check_apart(connection, header, state)
            return True
        now_ms = connection.hub.turn.open()
        for entry in state.entries:
            state.stage(entry, lambda entry=entry: _check(entry, version, now_ms), now_ms)  # type: ignore[misc]
        state.settle()
        if len(state.entries) == 1 and version >= BATCHES_FROM:
            self._remember(connection, header, request, state, buf, at, end)
        return True

    def _entry(
        self,
        state: ProduceRequestState,
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
            return self._refuse_transaction(index, request, header)
        return Entry(replica, Partition(index=index), view)

    def _find(
        self, version: int, topic: m.ProduceRequest.TopicProduceData, index: int
    ) -> Replica | ErrorCode:
        replicas = self._context.replicas
        if version < IDS_FROM:
            return replicas.find(topic.name, index)
        found = replicas.get_by_id(topic.topic_id, index)
        return found if found is not None else replicas.error_of_id(topic.topic_id, index)

    @staticmethod
    def _refuse_transaction(index: int, request: m.ProduceRequest, header: RequestHeader) -> Partition:
        """No transaction can be open, since no coordinator has started one."""
        if request.transactional_id is None:
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            return refused(index, code, "a transactional batch needs a transactional id in the request")
        code = ErrorCode.TRANSACTION_ABORTABLE if header.api_version >= 11 else ErrorCode.INVALID_TXN_STATE
        return refused(index, code, "the partition is not part of an ongoing transaction")

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
                    checked = await hub.env.blocking.submit(_check_or_error, entry, version, now_ms)
                except BlockingBusy:
                    checks.append(lambda entry=entry: _busy(entry))  # type: ignore[misc]
                    continue
                checks.append(lambda checked=checked: _taken(checked))  # type: ignore[misc]
            now_ms = hub.turn.open()
            for entry, check in zip(state.entries, checks, strict=True):
                state.stage(entry, check, now_ms)
            state.settle()
        except BaseException:
            connection.shut()  # an answer is missing: nothing behind it may be answered
            raise
        finally:
            if not connection.closed:
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
        replicas, name, topic_id = self._context.replicas, topic.name, topic.topic_id
        find = partial(replicas.get, name) if name else partial(replicas.get_by_id, topic_id)
        try:
            shape = ProduceShape(api, before, find, request.acks, name, topic_id)
        except ValueError:
            log.debug("No shape for %s", state.entries[0].replica)
            return
        connection.remember(shape)


def _check(entry: Entry, version: int, now_ms: int) -> Checked | None:
    """Check one partition's records, in memory of their own: the receive buffer is used again before the
    write.
    """
    records = entry.records
    rules = entry.replica.log.rules()
    if version < BATCHES_FROM:
        return check_produced_set(records, 0, len(records), rules, now_ms)
    return check_produced_batch(records, 0, len(records), rules, now_ms, version)


def _check_or_error(entry: Entry, version: int, now_ms: int) -> Checked | InvalidRecords | None:
    """As `_check`; the error without its frames, which hold what was decompressed."""
    try:
        return _check(entry, version, now_ms)
    except InvalidRecords as error:
        error.__context__ = None
        return error.with_traceback(None)


def _taken(checked: Checked | InvalidRecords | None) -> Checked | None:
    if isinstance(checked, InvalidRecords):
        raise checked
    return checked


def _busy(entry: Entry) -> Checked:
    raise AppendRefused(
        ErrorCode.REQUEST_TIMED_OUT, f"too many batches wait to be checked; {entry.replica} took nothing"
    )
