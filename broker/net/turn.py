"""One write per partition and turn of the event loop, before the turn's answers leave.

Produce requests that arrive in one turn are checked and given offsets at once; their batches wait in their
partition logs. When the loop has handed over everything that had arrived, the turn writes each log once,
then lets the answers go, one write for each connection, then wakes the readers that wait for these
partitions. Nothing is acknowledged, or visible to readers, before its bytes are in the file.

Where flush.messages wants records synced first, the answers about them wait for that
(`replication.sync_gate`), and so does all that is behind them on their connections.

A log that cannot be written fails all requests of the turn that appended to it, and no others: their
answers, which were prepared as if the write had succeeded, are replaced before anything leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from storage.append import NOT_HELD
from storage.errors import StorageFailed

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from replication.partition import Partition
    from runtime.clock import Clock


class Answerer(Protocol):
    """Whoever prepared an answer, asked for another one when the write failed."""

    def failed(
        self,
        replica: Partition,
        connection: Connection,
        position: int,
        correlation_id: int,
        error: StorageFailed,
    ) -> None:
        """Put the refusal at `position` of the connection's answers (-1: it gets none, acks=0)."""


Entry = tuple["Partition", int, Answerer, "Connection", int, int]
"""A staged append: partition, failed writes of its log before, who answers, connection, position of the
answer, correlation id."""


class _Held:
    """An answer that was prepared as if the sync of its records had ended well."""

    __slots__ = ("_answerer", "_connection", "_correlation_id", "_partition", "_position")

    def __init__(
        self,
        partition: Partition,
        answerer: Answerer,
        connection: Connection,
        position: int,
        correlation_id: int,
    ) -> None:
        self._partition, self._answerer, self._connection = partition, answerer, connection
        self._position, self._correlation_id = position, correlation_id

    def synced(self, error: StorageFailed | None) -> None:
        connection = self._connection
        if error is not None and not connection.closed:
            self._answerer.failed(self._partition, connection, self._position, self._correlation_id, error)
        connection.release()


class Turn:
    """What was accepted since the loop last wrote.

    `now_ms` is the wall clock, read once in a turn; 0 outside of one (use `open`).
    """

    __slots__ = (
        "_after",
        "_buffers",
        "_clock",
        "_look",
        "_loop",
        "_recycle",
        "_staged",
        "_written",
        "connections",
        "entries",
        "now_ms",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Clock, recycle: Callable[[bytearray], None]
    ) -> None:
        self._loop, self._clock, self._recycle = loop, clock, recycle
        self.now_ms = 0
        self.entries: list[Entry] = []
        self.connections: list[Connection] = []
        self._staged: dict[Partition, None] = {}
        self._written: dict[Partition, None] = {}
        self._after: list[Callable[[], None]] = []
        self._buffers: list[bytearray] = []
        self._look: Callable[[], None] | None = None

    def look_first(self, look: Callable[[], None]) -> None:
        """Call `look()` at the beginning of each turn: what it finds counts for the turn's appends."""
        self._look = look

    def open(self) -> int:
        """Begin a turn, if none is open, and return its time in ms since the epoch."""
        if not self.now_ms:
            if self._look is not None:
                self._look()
            self.now_ms = self._clock.now_ms()
            self._loop.call_soon(self.finish)
        return self.now_ms

    def add(
        self,
        partition: Partition,
        answerer: Answerer,
        connection: Connection,
        position: int,
        correlation_id: int,
    ) -> None:
        """Note a staged append whose answer stands at `position` of the connection's answers.

        `ProduceShape` does the same without the call.
        """
        self.entries.append(
            (partition, partition.log.failures, answerer, connection, position, correlation_id)
        )
        if not connection.in_turn:
            connection.in_turn = True
            self.connections.append(connection)

    def stage(self, partition: Partition) -> None:
        """The partition has staged batches of somebody who learns from `after_write` what became of them."""
        self._staged[partition] = None

    def after_write(self, callback: Callable[[], None]) -> None:
        """Call back once the turn's bytes are written, or given up, and before any answer leaves."""
        self._after.append(callback)

    def keep(self, buffer: bytearray | None) -> None:
        """A receive buffer that staged batches lie in: it is free again after the write."""
        if buffer is not None:
            self._buffers.append(buffer)

    def flush(self) -> None:
        """Write what is staged and let the answers go; readers are woken by `finish`."""
        entries, self.entries = self.entries, []
        connections, self.connections = self.connections, []
        dirty = dict.fromkeys([entry[0] for entry in entries])
        if self._staged:
            dirty.update(self._staged)
            self._staged.clear()
        failed: dict[Partition, StorageFailed] = {}
        for partition in dirty:
            try:
                partition.write_pending()
            except StorageFailed as error:
                failed[partition] = error
        for partition, failures, answerer, connection, position, correlation_id in entries:
            if partition.log.failures != failures or partition in failed:
                # Or the write failed earlier in the turn, when the log had to begin a new segment.
                failure = failed.get(partition) or StorageFailed(
                    f"the write of {partition} failed earlier", offline=partition.offline
                )
                answerer.failed(partition, connection, position, correlation_id, failure)
            elif partition.log.hold_from != NOT_HELD and partition.gate is not None:
                connection.hold()
                partition.gate.hold(_Held(partition, answerer, connection, position, correlation_id))
        if self._after:
            after, self._after = self._after, []
            for callback in after:
                callback()
        if self._buffers:
            for buffer in self._buffers:
                self._recycle(buffer)
            self._buffers.clear()
        for connection in connections:
            connection.in_turn = False
            connection.flush()
        self._written.update(dirty)

    def finish(self) -> None:
        """The end of the turn: flush, then wake who waits for the partitions that were written."""
        self.now_ms = 0
        self.flush()
        written, self._written = self._written, {}
        for partition in written:
            partition.wake()
