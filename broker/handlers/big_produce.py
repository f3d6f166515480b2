"""Produce requests that name thousands of partitions, without a long hold of the event loop.

The body is decoded, batches are checked, and the answer is encoded in threads. The batches are staged some at
a time, and what was staged is written before the next come; partitions are independent of each other, and of
one that is named twice the batches keep their order. The connection waits meanwhile, so answers stay in
order. A client that goes does not stop the work, as one that is not answered may have been served.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from broker.handlers.later import Later
from broker.handlers.produce_answers import Partition, Topic
from broker.handlers.produce_request import Entry, ProduceRequestState, check_or_error, taken
from broker.handlers.produce_transactions import admit
from protocol import messages as m
from protocol.errors import ErrorCode, InvalidRecords, MalformedMessage
from protocol.records.check import Checked
from runtime.blocking import BlockingBusy
from runtime.pieces import AT_ONCE, Steps, split
from storage.errors import AppendRefused

if TYPE_CHECKING:
    from broker.handlers.produce import ProduceHandler
    from broker.net.connection import Connection
    from protocol.headers import RequestHeader

STAGED_AT_ONCE: Final = 200
"""With their writes, of which each may be to another file."""


class BigProduce:
    """One request. What its connection waits for."""

    __slots__ = ("_connection", "_handler", "_header")

    def __init__(self, handler: ProduceHandler, connection: Connection, header: RequestHeader) -> None:
        self._handler, self._connection, self._header = handler, connection, header

    def serve(self, data: bytearray) -> None:
        """Serve a request whose body this is, and that has entered the gate of big bodies."""
        self._connection.waiting = self
        name = f"big produce of {self._connection.peer}"
        self._connection.hub.env.tasks.spawn(name, self._guarded(data))

    def cancel(self, connection: Connection) -> None:
        """The work goes on."""

    async def _guarded(self, data: bytearray) -> None:
        connection = self._connection
        try:
            await self._serve(data)
        except BaseException:
            connection.shut()  # an answer is missing: nothing behind it may be answered
            raise
        finally:
            if connection.waiting is self:
                connection.resume()

    async def _serve(self, data: bytearray) -> None:
        connection, header, context = self._connection, self._header, self._handler.context
        with context.big_bodies.inside() as leave:
            try:
                request, _ = await context.env.run_blocking(m.ProduceRequest.decode, header.api_version, data)
            except MalformedMessage as error:
                name = f"Produce v{header.api_version} from client {header.client_id!r}"
                connection.close(f"{name} does not parse: {error}")
                return
            state = self._handler.state(connection, header, request)
            await context.pieces.run(self._look_up(request, state))
            if request.transactional_id is not None:
                admitted = Later()
                admit(context, request.transactional_id, header.api_version, state.entries, admitted.give)
                state.entries = await admitted.response()
            for entries in split(state.entries, STAGED_AT_ONCE):
                await self._append(state, entries)
            if state.needs_replicas:
                leave()  # it may take long
                settled = Later()
                state.await_replicas(settled.give)
                state.replicated(await settled.response())
            await self._finish(state)

    def _look_up(self, request: m.ProduceRequest, state: ProduceRequestState) -> Steps[None]:
        left = AT_ONCE
        for topic in request.topic_data:
            answers: list[Partition] = []
            state.response.responses.append(
                Topic(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
            left -= 1
            for wanted in topic.partition_data:
                entry = self._handler.entry(request, self._header, topic, wanted)
                if isinstance(entry, Entry):
                    state.entries.append(entry)
                    entry = entry.answer
                answers.append(entry)
                left -= 1
                if left <= 0:
                    yield
                    left = AT_ONCE
            if left <= 0:
                yield
                left = AT_ONCE

    async def _append(self, state: ProduceRequestState, entries: Sequence[Entry]) -> None:
        """Check, stage and write some batches."""
        context, turn = self._handler.context, self._connection.hub.turn
        now_ms = context.env.clock.now_ms()
        try:
            checks = await context.env.blocking.submit(_checked, entries, self._header.api_version, now_ms)
        except BlockingBusy:
            busy = AppendRefused(ErrorCode.REQUEST_TIMED_OUT, "too many batches wait to be checked")
            checks = [busy] * len(entries)
        await context.pieces.turn()
        now_ms = turn.open()
        first = len(state.staged)
        for entry, checked in zip(entries, checks, strict=True):
            state.stage(entry, lambda checked=checked: _taken(checked), now_ms)  # type: ignore[misc]
        if len(state.staged) > first:
            written = Later()
            state.add_to_turn(first)
            turn.after_write(lambda: written.give(None))
            await written.response()
        for entry in entries:
            entry.records = bytearray()  # they are written, or refused

    async def _finish(self, state: ProduceRequestState) -> None:
        if state.acks == 0:
            state.finish_unanswered()
            return
        while True:
            failures = state.failures
            frame = await self._handler.context.env.run_blocking(state.framed)
            if failures == state.failures:  # else a sync has failed while it was encoded
                break
        if not self._connection.closed:
            state.finish(frame)


_Check = Checked | InvalidRecords | AppendRefused | None


def _checked(entries: Sequence[Entry], version: int, now_ms: int) -> list[_Check]:
    """Check batches, each in memory of its own: the newest ones are kept, and the request is not."""
    results: list[_Check] = []
    for entry in entries:
        entry.records = bytearray(entry.records)
        results.append(check_or_error(entry, version, now_ms))
    return results


def _taken(checked: _Check) -> Checked | None:
    if isinstance(checked, AppendRefused):
        raise checked
    return taken(checked)
