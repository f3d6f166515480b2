"""The partitions of `__consumer_offsets` as several brokers see them, with all that may go wrong.

One log for each partition. Only the leader at the current epoch appends; a batch is committed, or cut off
with all that follow it, some time later. When leadership moves, some of what was undecided stays and the
rest is gone: the deposed leader hears of the second and never of the first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from coordinator.ports import AppendRefused, ReadFailed
from protocol.errors import ErrorCode
from protocol.records.batch import read_header
from protocol.records.rules import Checked
from tests.simulation.virtual_time import Pause, Scheduler

APPEND_FAILURES = (
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
REFUSALS = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE)
Decided = Callable[[ErrorCode], None]


@dataclass(slots=True)
class Trouble:
    """How often, in 1000 appends or reads, something goes wrong."""

    append_fails: int = 0
    append_is_refused: int = 0
    commit_is_slow: int = 0
    read_fails: int = 0


@dataclass(slots=True)
class Undecided:
    base_offset: int
    done: Decided
    is_told: Callable[[], bool]


@dataclass(slots=True)
class Partition:
    batches: list[bytes] = field(default_factory=list)
    end_offset: int = 0
    epoch: int = 0
    undecided: deque[Undecided] = field(default_factory=deque)
    decides_at_ms: int = 0

    def cut(self, offset: int) -> None:
        while self.batches and read_header(self.batches[-1]).base_offset >= offset:
            self.batches.pop()
        self.end_offset = offset


class SimulatedLog:
    """All partitions; `trouble` may be changed while it runs."""

    def __init__(self, scheduler: Scheduler, random: Random, partition_count: int, trouble: Trouble) -> None:
        self._scheduler = scheduler
        self._random = random
        self.trouble = trouble
        self.partitions = [Partition() for _ in range(partition_count)]

    def one_in_1000(self, chances: int) -> bool:
        return self._random.randrange(1000) < chances

    def append(
        self, number: int, batch: Checked, epoch: int, done: Decided, is_told: Callable[[], bool]
    ) -> int:
        """See `ports.PartitionWriter.append`; `is_told` says whether the broker still lives."""
        partition = self.partitions[number]
        if epoch != partition.epoch:
            raise AppendRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.one_in_1000(self.trouble.append_is_refused):
            raise AppendRefused(self._random.choice(REFUSALS))
        base_offset = partition.end_offset
        batch.buf[0:8] = base_offset.to_bytes(8, "big")
        stored = bytes(batch.buf)
        partition.batches.append(stored)
        partition.end_offset = read_header(stored).last_offset + 1
        undecided = Undecided(base_offset, done, is_told)
        partition.undecided.append(undecided)
        slow = self.one_in_1000(self.trouble.commit_is_slow)
        delay_ms = self._random.randrange(1, 9000) if slow else self._random.randrange(1, 15)
        now_ms = self._scheduler.now_ms()
        partition.decides_at_ms = max(partition.decides_at_ms, now_ms + delay_ms)
        self._scheduler.add(partition.decides_at_ms - now_ms, lambda: self._decide(partition, undecided))
        return base_offset

    def _decide(self, partition: Partition, undecided: Undecided) -> None:
        if not partition.undecided or partition.undecided[0] is not undecided:
            return  # cut off, or the leader has changed
        if self.one_in_1000(self.trouble.append_fails):
            self._fail(partition, self._random.choice(APPEND_FAILURES))
        else:
            partition.undecided.popleft()
            if undecided.is_told():
                undecided.done(ErrorCode.NONE)

    def _fail(self, partition: Partition, error: ErrorCode) -> None:
        failed, partition.undecided = partition.undecided, deque()
        if failed:
            partition.cut(failed[0].base_offset)
        for each in failed:
            if each.is_told():
                each.done(error)

    def new_leader(self, number: int) -> int:
        """Somebody leads from now on; returns the epoch. Of what was undecided a part survives."""
        partition = self.partitions[number]
        partition.epoch += 1
        for _ in range(self._random.randint(0, len(partition.undecided))):
            partition.undecided.popleft()
        self._fail(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition.decides_at_ms = 0
        return partition.epoch

    def bounds(self, number: int) -> tuple[int, int]:
        return 0, self.partitions[number].end_offset

    async def read(self, number: int, offset: int, max_bytes: int) -> bytes:
        """A few batches at a time, so that requests come while a load goes on."""
        await Pause(self._random.randrange(0, 20))
        if self.one_in_1000(self.trouble.read_fails):
            raise ReadFailed("the disk said no")
        wanted = [
            batch for batch in self.partitions[number].batches if read_header(batch).last_offset >= offset
        ]
        few = max(len(wanted) // 3, 20)
        return b"".join(wanted[:few])

    def stored(self, number: int) -> bytes:
        """Everything in a partition."""
        return b"".join(self.partitions[number].batches)
