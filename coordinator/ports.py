"""What the coordinators need from the broker around them.

The broker implements these for one internal topic and hands them to a `CoordinatorRuntime`; tests implement
them in memory. Everything runs on the event loop's thread. Error codes are the log's own; `result.py` turns
them into what a client hears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from protocol.errors import ErrorCode
from protocol.records.rules import Checked

Guard: TypeAlias = object
"""Of the log; the coordinator hands it on."""


class AppendRefused(Exception):
    """A batch that the log does not take; nothing of it was staged."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.message)
        self.error = error


class ReadFailed(Exception):
    """Records of an internal topic cannot be read; the partition's load fails."""


class PartitionWriter(Protocol):
    """Appends to one internal topic, as its leader, with acks=all."""

    def append(
        self,
        partition: int,
        batch: Checked,
        leader_epoch: int,
        done: Callable[[ErrorCode], None],
        guard: Guard | None = None,
        transaction_version: int = 0,
    ) -> int:
        """Stage one batch and return the offset that its first record gets.

        `guard`: what verifying a transaction gave, for its first batch (KIP-890). `transaction_version`: of
        the producer whose transaction a marker ends.

        `done(NONE)` is called when the high watermark has passed the batch, `done(error)` when it is not in
        the log and will not be; never during `append`, once at most, and for one partition in the order of
        appends. A failed batch takes all later ones that are not yet committed with it. A batch that was
        written but is not replicated yet stays undecided (the runtime has a time-out of its own for answers).
        Raises AppendRefused: NOT_LEADER_OR_FOLLOWER where the broker does not lead the partition at this
        epoch, NOT_ENOUGH_REPLICAS, MESSAGE_TOO_LARGE, KAFKA_STORAGE_ERROR.
        """


class PartitionReader(Protocol):
    """Reads one internal topic back when this broker becomes the coordinator."""

    def bounds(self, partition: int) -> tuple[int, int]:
        """Log start offset and log end offset (exclusive). Raises ReadFailed."""

    async def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset` on; at least one however large, none at the end.

        Must not block the loop (a cold read goes to a thread). Raises ReadFailed.
        """


class TopicFacts(NamedTuple):
    """One topic. `racks` are those of each partition's replicas, sorted; empty where no broker has one."""

    name: str
    topic_id: bytes
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()


class Topics(Protocol):
    """The topics of the cluster as this broker sees them now."""

    def version(self) -> int:
        """Another number when topics may have changed."""

    def names_version(self) -> int:
        """Another number when there may be topics that were not there before."""

    def topic(self, name: str) -> TopicFacts | None:
        """The topic of this name; None where there is none."""

    def name_of(self, topic_id: bytes) -> str | None:
        """The topic with this id; None where there is none."""

    def names(self) -> Iterable[str]:
        """All topics, internal ones too."""


class Cancellable(Protocol):
    """A pending call of a timer."""

    def cancel(self) -> object: ...


class Timer(Protocol):
    """runtime's LoopTimer, or a wheel that a test advances."""

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Cancellable: ...


class Clock(Protocol):
    """Milliseconds since the epoch. Sessions are measured with it, so it should not follow a wall clock that
    is set: the time of start plus what a monotonic clock says since.
    """

    def now_ms(self) -> int: ...
