"""The newest batches of a partition, kept as the bytes that were appended.

Nearly every fetch asks for what was written last; a join of a few small buffers answers it without a system
call or an index lookup. Bounded for each partition and, through `TailBudget`, for the broker: over the budget
the partition that has waited longest gives up its older half. The tail always reaches to the end of what is
written in the active segment; a batch too large to keep empties it.
"""

from __future__ import annotations

from bisect import bisect_right

from runtime.files import Buffer

BATCH_BYTES_MAX = 16 << 10
PARTITION_BYTES_MAX = 1 << 20
BUDGET_BYTES = 32 << 20
OVERHEAD_BYTES = 150  # of one kept batch: the object, three list slots, two integers


class TailBudget:
    """What all tails of a broker may hold together."""

    __slots__ = ("_tails", "limit_bytes", "used_bytes")

    def __init__(self, limit_bytes: int = BUDGET_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._tails: dict[Tail, None] = {}  # those that hold something, the longest waiting first

    def shrink(self) -> None:
        """Called when over the limit."""
        while self.used_bytes > self.limit_bytes and self._tails:
            tail = next(iter(self._tails))
            del self._tails[tail]
            tail.drop_half()
            if tail.batches:
                self._tails[tail] = None

    def join(self, tail: Tail) -> None:
        self._tails[tail] = None

    def leave(self, tail: Tail) -> None:
        self._tails.pop(tail, None)


class Tail:
    """Batches with increasing offsets. `oldest` is the offset from which on a read can be answered here."""

    __slots__ = ("_budget", "batches", "ends", "held_bytes", "oldest", "starts")

    def __init__(self, budget: TailBudget, end_offset: int, position: int) -> None:
        self._budget = budget
        self.batches: list[Buffer] = []
        self.ends: list[int] = []  # exclusive end offset of each batch
        self.starts = [position]  # file position of each batch, and of the end
        self.oldest = end_offset
        self.held_bytes = 0

    def reset(self, end_offset: int, position: int) -> None:
        """Forget everything; the log goes on at `end_offset`, `position`."""
        if self.batches:
            self._budget.used_bytes -= self.held_bytes
            self._budget.leave(self)
            self.batches, self.ends = [], []
        self.held_bytes = 0
        self.starts = [position]
        self.oldest = end_offset

    def add(self, batch: Buffer, size: int, end_offset: int) -> None:
        """The batch was written where the last one ended. It is kept as it is; nobody may change it."""
        position = self.starts[-1] + size
        if size > BATCH_BYTES_MAX:
            self.reset(end_offset, position)
            return
        batches = self.batches
        if not batches:
            self._budget.join(self)
        batches.append(batch)
        self.ends.append(end_offset)
        self.starts.append(position)
        size += OVERHEAD_BYTES
        self.held_bytes += size
        budget = self._budget
        budget.used_bytes += size
        if self.held_bytes > PARTITION_BYTES_MAX:
            self.drop_half()
        if budget.used_bytes > budget.limit_bytes:
            budget.shrink()

    def drop_half(self) -> None:
        """Give up the older half."""
        drop = (len(self.batches) + 1) // 2
        freed = self.starts[drop] - self.starts[0] + drop * OVERHEAD_BYTES
        self.oldest = self.ends[drop - 1]
        del self.batches[:drop], self.ends[:drop], self.starts[:drop]
        self.held_bytes -= freed
        self._budget.used_bytes -= freed
        if not self.batches:
            self._budget.leave(self)

    def find(self, offset: int, upto: int) -> tuple[int, int]:
        """Numbers of the first batch that ends above `offset` and of the first that ends above `upto`."""
        ends = self.ends
        first = bisect_right(ends, offset)
        return first, len(ends) if not ends or upto >= ends[-1] else bisect_right(ends, upto, first)
