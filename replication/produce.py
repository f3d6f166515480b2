"""Appending checked batches to several partitions: what a Produce request and the broker's own writers share.

`append` stages everything in one synchronous stretch; the results are known when the turn's write is over,
and with acks=all and more than one replica when the high watermark has passed (delayed_produce). `done` is
called exactly once, never from within `append`, except when nothing was staged at all.

Partitions are independent: one may be refused while the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from protocol.errors import ErrorCode
from replication.partition import ACKS_ALL, Partition
from storage.errors import AppendRefused, StorageFailed

if TYPE_CHECKING:
    from protocol.records.rules import Checked
    from replication.delayed_produce import ProducePurgatory


class WriteTurn(Protocol):
    """The turn of the event loop in which staged batches are written together (broker.net.turn)."""

    def open(self) -> int:
        """Begin a turn, if none is open; its wall clock in ms."""

    def stage(self, partition: Partition) -> None:
        """The partition has staged batches: call its `write_pending` in this turn, later its `wake`."""

    def after_write(self, callback: Callable[[], None]) -> None:
        """Call back once the turn's bytes are written, or given up."""


class ProduceResult:
    """What became of the batch for one partition. Offsets are -1 on error; `log_append_time_ms` is -1 under
    CreateTime. `log_start_offset` is that of the moment of the append.
    """

    __slots__ = (
        "base_offset",
        "error",
        "failures",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "message",
        "partition",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.failures = partition.log.failures
        self.error = ErrorCode.NONE
        self.message: str | None = None
        self.base_offset = self.last_offset = self.log_append_time_ms = self.log_start_offset = -1

    def refuse(self, error: ErrorCode, message: str | None = None) -> None:
        self.error, self.message = error, message
        self.base_offset = self.last_offset = self.log_append_time_ms = self.log_start_offset = -1


Done = Callable[[list[ProduceResult]], None]


def append(
    turn: WriteTurn,
    batches: Sequence[tuple[Partition, Checked]],
    acks: int,
    timeout_ms: int,
    purgatory: ProducePurgatory,
    done: Done,
    transaction_version: int = 0,
) -> None:
    """Stage one batch for each partition and have `done(results)` called when all of them are settled.

    The batches are the broker's own: their sequences, if they have any, mean nothing.
    """
    now_ms = turn.open()
    results: list[ProduceResult] = []
    staged: list[ProduceResult] = []
    for partition, checked in batches:
        result = ProduceResult(partition)
        results.append(result)
        try:
            appended = partition.append(
                checked, acks, now_ms, check_order=False, transaction_version=transaction_version
            )
        except (AppendRefused, StorageFailed) as refused:
            result.refuse(refused.error, str(refused))
            continue
        result.base_offset, result.last_offset = appended.base_offset, appended.last_offset
        result.log_append_time_ms = appended.log_append_time_ms
        result.log_start_offset = partition.log.start_offset
        result.failures = partition.log.failures
        turn.stage(partition)
        staged.append(result)
    if not staged:
        done(results)
        return
    turn.after_write(lambda: _written(results, staged, acks, timeout_ms, purgatory, done))


def _written(
    results: list[ProduceResult],
    staged: list[ProduceResult],
    acks: int,
    timeout_ms: int,
    purgatory: ProducePurgatory,
    done: Done,
) -> None:
    for result in staged:
        if result.partition.log.failures != result.failures:
            result.refuse(ErrorCode.KAFKA_STORAGE_ERROR, f"the write to {result.partition} failed")
    if acks == ACKS_ALL:
        purgatory.wait(results, timeout_ms, done)
    else:
        done(results)
