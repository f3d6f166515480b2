"""An internal topic in memory: the coordinator's ports with the decisions of the log in the test's hands."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from coordinator.ports import AppendRefused
from protocol.errors import ErrorCode
from protocol.records.batch import read_header
from protocol.records.rules import Checked
from runtime.timer import TimerWheel


class MemoryTopic:
    """Partition logs as lists of batches. `decide` commits or fails the oldest undecided append."""

    def __init__(self) -> None:
        self.logs: dict[int, list[bytes]] = {}
        self.starts: dict[int, int] = {}
        self.undecided: deque[tuple[int, Callable[[ErrorCode], None]]] = deque()
        self.refuse: ErrorCode | None = None
        self.epochs: list[int] = []
        self.guards: list[object | None] = []
        self.reads = 0

    def end(self, partition: int) -> int:
        log = self.logs.get(partition)
        return read_header(log[-1]).last_offset + 1 if log else self.starts.get(partition, 0)

    def append(
        self,
        partition: int,
        batch: Checked,
        leader_epoch: int,
        done: Callable[[ErrorCode], None],
        guard: object | None = None,
        transaction_version: int = 0,
    ) -> int:
        if self.refuse is not None:
            raise AppendRefused(self.refuse)
        base_offset = self.end(partition)
        batch.buf[0:8] = base_offset.to_bytes(8, "big")
        self.logs.setdefault(partition, []).append(bytes(batch.buf))
        self.undecided.append((base_offset, done))
        self.epochs.append(leader_epoch)
        self.guards.append(guard)
        return base_offset

    def commit(self, count: int = 1) -> None:
        for _ in range(count):
            self.undecided.popleft()[1](ErrorCode.NONE)

    def fail(self, error: ErrorCode, partition: int = 0) -> None:
        """The oldest undecided append and all after it are cut off the log."""
        failed, self.undecided = self.undecided, deque()
        base_offset = failed[0][0]
        self.logs[partition] = [
            batch for batch in self.logs[partition] if read_header(batch).base_offset < base_offset
        ]
        for _, done in failed:
            done(error)

    def bounds(self, partition: int) -> tuple[int, int]:
        return self.starts.get(partition, 0), self.end(partition)

    async def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        self.reads += 1
        out = b""
        for batch in self.logs.get(partition, []):
            if read_header(batch).last_offset >= offset and (not out or len(out) + len(batch) <= max_bytes):
                out += batch
        return out


class VirtualTime:
    """Clock and timer of a test; `advance` fires what is due."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self.wheel = TimerWheel(now_ms)
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        return self.wheel.add(delay_ms, callback)

    def advance(self, ms: int) -> None:
        self.time_ms += ms
        for entry in self.wheel.advance(self.time_ms):
            entry.fire()


class Tasks:
    """Runs coroutines when told to: in one go, or step by step."""

    def __init__(self) -> None:
        self.waiting: list[Coroutine[Any, Any, None]] = []

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        self.waiting.append(coroutine)

    def run(self) -> None:
        async def all_of() -> None:
            while self.waiting:
                await self.waiting.pop(0)

        asyncio.run(all_of())
