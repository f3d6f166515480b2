"""Everything below the handlers of share groups: real partitions and logs, a persister in memory whose
answers the test holds back, and time that the test moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from protocol.errors import ErrorCode
from replication.partition import Partition
from replication.share.ports import Limits, Reset, ShareState, StateWrite
from replication.share.share_fetch import ShareFetch, ShareRow, ShareWish
from replication.share.share_partitions import Place, SharePartitions
from runtime.timer import TimerWheel
from tests.support.handler_broker import HandlerBroker

GROUP = "g"


@dataclass
class MemoryPersister:
    """Keeps nothing: answers reads with `state`, and writes when the test says so, unless `at_once`."""

    state: ShareState | None = field(default_factory=lambda: ShareState(2, 0))
    read_error: ErrorCode = ErrorCode.NONE
    at_once: bool = True
    reads: list[Callable[[], None]] = field(default_factory=list)
    writes: list[tuple[StateWrite, Callable[[ErrorCode], None]]] = field(default_factory=list)

    def read(self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int, done: Any) -> None:
        def answer() -> None:
            done(self.read_error, self.state if self.read_error is ErrorCode.NONE else None)

        if self.at_once:
            answer()
        else:
            self.reads.append(answer)

    def write(self, change: StateWrite, done: Callable[[ErrorCode], None]) -> None:
        self.writes.append((change, done))
        if self.at_once:
            done(ErrorCode.NONE)


@dataclass
class Settings:
    the_limits: Limits = field(default_factory=lambda: Limits(1000, 5, 200))
    the_reset: tuple[Reset, int] = (Reset.LATEST, 0)
    renew: bool = True

    def limits(self, group_id: str) -> Limits:
        return self.the_limits

    def reset(self, group_id: str) -> tuple[Reset, int]:
        return self.the_reset

    def read_committed(self, group_id: str) -> bool:
        return False

    def renew_allowed(self, group_id: str) -> bool:
        return self.renew


class Time:
    """Clock, timer and deadlines of one virtual time."""

    def __init__(self) -> None:
        self.wheel = TimerWheel(0)
        self.add = self.wheel.add

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self.wheel.now_ms

    def monotonic(self) -> float:
        return self.wheel.now_ms / 1000

    def pass_ms(self, step: int) -> None:
        for entry in self.wheel.advance(self.wheel.now_ms + step):
            entry.fire()


class Deadlines:
    """Deadline buckets on a virtual time."""

    def __init__(self, time: Time) -> None:
        self._time = time

    def add(self, waiter: Any, wait_ms: int) -> dict[Any, None]:
        bucket = {waiter: None}

        def expire() -> None:
            if bucket.pop(waiter, waiter) is None:
                waiter.expire()

        self._time.add(wait_ms, expire)
        return bucket


class Stage:
    """See the module."""

    def __init__(self, broker: HandlerBroker) -> None:
        self.broker = broker
        self.persister, self.settings, self.time = MemoryPersister(), Settings(), Time()
        self.deadlines = Deadlines(self.time)
        self.searches: list[tuple[Partition, int, Callable[[int | None], None]]] = []
        replicas = broker.ctx.replicas
        self.partitions = SharePartitions(
            lambda topic_id, index: (
                replicas.get_by_id(topic_id, index) or replicas.error_of_id(topic_id, index)
            ),
            self.persister,
            self.settings,
            self.time,
            self.time,
            lambda *search: self.searches.append(search),
        )

    def topic(self, name: str = "t", partitions: int = 1) -> bytes:
        return bytes(self.broker.create(name, partitions).topic_id)

    def produce(self, *sizes: int, index: int = 0) -> None:
        """Batches of so many records."""
        for size in sizes:
            self.broker.produce("t", index, [(1000, b"x" * 10)] * size)
        partition = self.broker.ctx.replicas.get("t", index)
        assert partition is not None
        partition.wake()

    def fetch(self, *places: Place, member: str = "ann", **wish: Any) -> Fetch:
        """Begin a fetch."""
        fields = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, **wish}
        asked = ShareWish(GROUP, member, batch_size=500, mode=0, **fields)
        return Fetch(self, asked, list(places))

    def say(self, place: Place, acks: Any, member: str = "ann") -> list[tuple[ErrorCode, str | None]]:
        """Acknowledge; what it was told so far."""
        told: list[tuple[ErrorCode, str | None]] = []
        self.partitions.acknowledge(GROUP, member, place, acks, lambda *result: told.append(result))
        return told


class Fetch:
    """A fetch and its rows, once they are there."""

    def __init__(self, stage: Stage, wish: ShareWish, places: list[Place]) -> None:
        self.rows: list[ShareRow] | None = None
        self.operation = ShareFetch(stage.partitions, wish, stage.deadlines, self._done)
        self.operation.start(places)

    def _done(self, rows: list[ShareRow]) -> None:
        assert self.rows is None, "answered twice"
        self.rows = rows

    @property
    def got(self) -> dict[int, list[tuple[int, int, int]]]:
        """Acquired ranges by partition."""
        assert self.rows is not None, "not answered"
        return {row.place[1]: [tuple(each) for each in row.ranges] for row in self.rows}

    @property
    def errors(self) -> list[int]:
        assert self.rows is not None, "not answered"
        return [row.error for row in self.rows]
