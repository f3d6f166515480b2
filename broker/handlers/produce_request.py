"""One Produce request on its way: its batches are checked, staged, written by the turn, and answered.

The answer has its place among those of the connection as soon as all that can be staged is, and leaves when
the turn has written. A write or a sync that fails changes it before it has left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.handlers.produce_answers import NO_TIME, Partition
from broker.net.answers import frame_answer
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, InvalidRecords
from protocol.headers import RequestHeader
from protocol.records.check import Checked, check_produced_batch
from protocol.records.check_legacy import check_produced_set
from replication.delayed_produce import ProducePurgatory
from replication.partition import ACKS_ALL
from replication.partition import Partition as Replica
from replication.produce import ProduceResult
from storage.errors import AppendRefused, StorageFailed

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from storage.producers.verification import VerificationGuard

BATCHES_FROM: Final = 3

Check = Callable[[], Checked | None]


@dataclass(slots=True)
class Entry:
    """One partition of a request that is to be appended to; `answer` stands in the response already.

    `guard` is what verifying a batch of a transaction gave (produce_transactions).
    """

    replica: Replica
    answer: Partition
    records: memoryview | bytearray
    transactional: bool = False
    guard: VerificationGuard | None = None
    last_offset: int = -1

    def refuse(self, error: ErrorCode, message: str | None) -> None:
        """Nothing is appended."""
        answer = self.answer
        answer.error_code = error
        answer.error_message = message if error != ErrorCode.KAFKA_STORAGE_ERROR else None
        answer.base_offset, answer.log_append_time_ms, answer.log_start_offset = -1, NO_TIME, -1


class _Working:
    """The connection waits for a thread that checks its batches, for a transaction's coordinator, or for
    replicas.
    """

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        """The work goes on; its batches are appended though nobody hears of it, as after any lost answer."""


IN_THREAD = _Working()
ADMITTED_LATER = _Working()
NO_POSITION = -1
REPLICATING = _Working()


class ProduceRequestState:
    """One request on its way: what was staged for it, and the place of its answer."""

    __slots__ = (
        "_finished",
        "_header",
        "_position",
        "_purgatory",
        "acks",
        "connection",
        "entries",
        "failures",
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
        self.connection, self._header, self._purgatory = connection, header, purgatory
        self.acks, self.timeout_ms = acks, timeout_ms
        self.response = m.ProduceResponse()
        self.entries: list[Entry] = []
        self.staged: list[Entry] = []
        self.failures = 0
        self._position = NO_POSITION
        self._finished = False

    def stage(self, entry: Entry, check: Check, now_ms: int) -> None:
        """Check and stage one batch; a refusal goes into the answer."""
        answer = entry.answer
        try:
            checked = check()
            if checked is None:  # v0-2 with no whole message: nothing to do, and no error
                entry.refuse(ErrorCode.NONE, None)
                return
            appended = entry.replica.append(checked, self.acks, now_ms, True, entry.guard)
        except InvalidRecords as error:
            entry.refuse(error.error, str(error))
            answer.record_errors = [
                m.ProduceResponse.BatchIndexAndErrorMessage(
                    batch_index=index, batch_index_error_message=message
                )
                for index, message in error.record_errors
            ]
            return
        except (AppendRefused, StorageFailed) as error:
            entry.refuse(error.error, str(error))
            return
        answer.base_offset = appended.base_offset
        answer.log_append_time_ms = appended.log_append_time_ms
        answer.log_start_offset = entry.replica.log.start_offset
        entry.last_offset = appended.last_offset
        self.staged.append(entry)

    def settle(self) -> None:
        """Everything that can be staged is: answer after the turn's write."""
        connection = self.connection
        if not self.staged:
            self._finish()
            return
        turn = connection.hub.turn
        if self.acks:
            self._position = len(connection.out)
            connection.out.append(b"")
        self.add_to_turn(0)
        if self.needs_replicas:
            connection.waiting = REPLICATING  # nothing behind it may be answered before
            turn.after_write(self._await_replicas)
        else:
            turn.after_write(self._finish)

    def add_to_turn(self, first: int) -> None:
        """Have what was staged from number `first` on written by the turn."""
        turn = self.connection.hub.turn
        for number, entry in enumerate(self.staged[first:], first):
            turn.add(entry.replica, self, self.connection, number, self._header.correlation_id)

    @property
    def needs_replicas(self) -> bool:
        """Whether the answer waits for other replicas of what was written."""
        return self.acks == ACKS_ALL and not all(entry.replica.alone for entry in self.staged)

    def failed(
        self,
        replica: Replica,
        connection: Connection,
        position: int,
        correlation_id: int,
        error: StorageFailed,
    ) -> None:
        """See `Turn`: the write of what was staged failed, or its sync after the answer was prepared."""
        self.staged[position].refuse(error.error, str(error))
        self.failures += 1
        if self._finished:
            self._finish()

    def _await_replicas(self) -> None:
        """Written; acks=all still needs the other in-sync replicas.

        What was answered before leaves with this turn, so the place kept for this answer, behind which there
        is nothing, is given up when it is not there yet.
        """
        self.await_replicas(self._replicated)
        if not self._finished and not self.connection.closed:
            del self.connection.out[self._position]
            self._position = NO_POSITION

    def await_replicas(self, done: Callable[[list[ProduceResult]], None]) -> None:
        """Have `done` called with what the in-sync replicas say to it."""
        results = []
        for entry in self.staged:
            result = ProduceResult(entry.replica)
            result.last_offset = entry.last_offset
            result.error = ErrorCode(entry.answer.error_code)
            results.append(result)
        self._purgatory.wait(results, self.timeout_ms, done)

    def replicated(self, results: list[ProduceResult]) -> None:
        """The in-sync replicas have what they will have of it."""
        for entry, result in zip(self.staged, results, strict=True):
            if result.error != entry.answer.error_code:
                entry.refuse(result.error, result.message or result.error.message)

    def _replicated(self, results: list[ProduceResult]) -> None:
        self.replicated(results)
        connection = self.connection
        if not connection.closed:
            self._finish()
            if connection.in_turn:
                connection.waiting = None
                connection.hub.loop.call_soon(connection.go_on)
            else:
                connection.resume()

    def finish(self, frame: bytes) -> None:
        """This is the answer. It may change as long as it is held for a sync."""
        self._finished = True
        self._position = len(self.connection.out)
        self.connection.out.append(frame)

    def framed(self) -> bytes:
        """The answer, in any thread."""
        header = self._header
        return frame_answer(ApiKey.PRODUCE, header.api_version, header.correlation_id, self.response)

    def finish_unanswered(self) -> None:
        """The end of a request with acks=0, of which only a refusal is heard: the connection closes."""
        connection = self.connection
        for topic in self.response.responses:
            for answer in topic.partition_responses:
                if answer.error_code:
                    reason = f"Produce with acks=0 failed: {answer.error_message or answer.error_code!r}"
                    connection.hub.loop.call_soon(connection.close, reason)
                    return

    def _finish(self) -> None:
        self._finished = True
        connection = self.connection
        if self.acks == 0:
            self.finish_unanswered()
            return
        frame = self.framed()
        if self._position == NO_POSITION:
            self._position = len(connection.out)
            connection.out.append(frame)
        else:
            connection.out[self._position] = frame


def check(entry: Entry, version: int, now_ms: int) -> Checked | None:
    """Check one partition's records, in memory of their own: the receive buffer is used again before the
    write.
    """
    records = entry.records
    rules = entry.replica.log.rules()
    if version < BATCHES_FROM:
        return check_produced_set(records, 0, len(records), rules, now_ms)
    return check_produced_batch(records, 0, len(records), rules, now_ms, version)


def check_or_error(entry: Entry, version: int, now_ms: int) -> Checked | InvalidRecords | None:
    """As `check`; the error without its frames, which hold what was decompressed."""
    try:
        return check(entry, version, now_ms)
    except InvalidRecords as error:
        error.__context__ = None
        return error.with_traceback(None)


def taken(checked: Checked | InvalidRecords | None) -> Checked | None:
    if isinstance(checked, InvalidRecords):
        raise checked
    return checked


def busy(entry: Entry) -> Checked:
    raise AppendRefused(
        ErrorCode.REQUEST_TIMED_OUT, f"too many batches wait to be checked; {entry.replica} took nothing"
    )
