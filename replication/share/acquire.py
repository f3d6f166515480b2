"""Which of the records that were read a member gets.

Records that are in the window already are given again where they are free; what lies behind the window is
added to it. A member is given whole batches where it can be (batch_optimized): its `max_records` only says
when to stop, and what is added is cut into pieces of about `batch_size` at the borders of the log's batches.
In the mode record_limit it gets no record more than `max_records`; the rest of a batch is in the window, and
free.

A record that was delivered often may be what makes members fail, so what fails often is given in ever
smaller parts: from half the delivery limit on, by half, a quarter ... of its batch; in its last delivery each
record is alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from replication.share.log_batches import LogBatch
from replication.share.ports import Limits
from replication.share.runs import ACQUIRED, AVAILABLE, FlightBatch, Run
from replication.share.window import Window

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
THROTTLE_MIN = 2


class AcquiredRange(NamedTuple):
    """Records that a member now holds, `last` inclusive, and how often they have been delivered."""

    first: int
    last: int
    delivery_count: int


@dataclass(slots=True)
class Wish:
    """What a member asks for, of a read that began at `fetch_offset`."""

    member: str
    fetch_offset: int
    max_records: int
    batch_size: int
    mode: int = BATCH_OPTIMIZED


@dataclass(slots=True)
class Acquired:
    """What it gets. `count` is about the number of records: offsets without a record count."""

    ranges: list[AcquiredRange] = field(default_factory=list)
    count: int = 0

    def add(self, first: int, last: int, delivery_count: int, join: bool = False) -> None:
        """One more range; with `join` it becomes a part of the last one where it continues it."""
        self.count += last - first + 1
        if join and self.ranges:
            before = self.ranges[-1]
            if before.last + 1 == first and before.delivery_count == delivery_count:
                self.ranges[-1] = AcquiredRange(before.first, last, delivery_count)
                return
        self.ranges.append(AcquiredRange(first, last, delivery_count))


class Acquisition:
    """One acquisition. `deadline_ms` is when its locks run out."""

    def __init__(
        self, window: Window, wish: Wish, log: Sequence[LogBatch], limits: Limits, deadline_ms: int
    ) -> None:
        self._window, self._wish, self._log, self._limits = window, wish, log, limits
        self._deadline_ms = deadline_ms
        self._throttle_from = max(THROTTLE_MIN, (limits.delivery_count_limit + 1) // 2)
        self._limited = wish.mode == RECORD_LIMIT
        self.acquired = Acquired()

    def run(self) -> Acquired:
        """Acquire. Nothing where there was nothing to read or the window is full."""
        window, log = self._window, self._log
        if not log or log[-1].last < window.start_offset:
            return self.acquired
        last, most = self._bounds(log[-1].last)
        if most <= 0:
            return self.acquired
        first = base = log[0].first
        self._archive_vanished(first)
        floor = window.floor(base)
        if floor is None:
            base = max(base, window.start_offset)
        elif floor.last >= base:
            base = floor.first
        known = window.beginning_in(min(base, last), last)
        if not known:
            self._add_new(first, last, most)
            return self.acquired
        most = self._acquire_known(known, base, first, last, most)
        if self.acquired.count < most and known[-1].last < last:
            self._add_new(known[-1].last + 1, last, most - self.acquired.count)
        if self.acquired.ranges:
            window.moved_gap(self.acquired.ranges[-1].last + 1)
        return self.acquired

    def _bounds(self, last: int) -> tuple[int, int]:
        """The last offset to look at and the most records to take, within the limit of the window. A full
        window still gives what is free in it.
        """
        window, wish = self._window, self._wish
        most = min(wish.max_records, self._limits.max_record_locks - window.in_flight)
        if most <= 0 and wish.fetch_offset <= window.end_offset:
            last = min(last, window.end_offset)
            most = min(wish.max_records, window.end_offset - wish.fetch_offset + 1)
        return last, most

    def _archive_vanished(self, first: int) -> None:
        """Where the log has nothing from the fetch offset to `first`, compaction took what was free there."""
        window, offset = self._window, self._wish.fetch_offset
        if not window.batches or offset >= first:
            return
        floor = window.floor(offset)
        begin = floor.first if floor is not None and floor.last >= offset else offset
        if window.archive(window.beginning_in(begin, first - 1), offset, first - 1):
            window.may_have_free = True

    # What is in the window

    def _acquire_known(self, known: list[FlightBatch], base: int, first: int, last: int, most: int) -> int:
        """Take what is free in batches of the window, and what lies in unknown gaps between them; how many
        records may be taken after all (0: no more).
        """
        window, acquired = self._window, self.acquired
        gap_from = base
        for batch in known:
            if acquired.count >= most:
                break
            if window.gap_is_open:
                if gap_from < batch.first:
                    self._add_new(gap_from, batch.first - 1, most - acquired.count)
                gap_from = batch.last + 1
                if acquired.count >= most:
                    break
            room = most - acquired.count
            throttled = self._is_throttled(batch, first, last)
            if throttled and acquired.count:
                return 0
            is_whole = batch.first >= first and batch.last <= last and not batch.split
            if is_whole and not throttled and not (self._limited and batch.size > room):
                [run] = batch.runs
                if run.free:
                    self._take(run)
                    acquired.add(run.first, run.last, run.count)
            elif self._acquire_part(batch, first, last, room) and throttled:
                return 0
        return most

    def _is_throttled(self, batch: FlightBatch, first: int, last: int) -> bool:
        if not batch.split:
            return batch.runs[0].count >= self._throttle_from
        return any(
            run.state == AVAILABLE and run.count >= self._throttle_from for run in batch.touching(first, last)
        )

    def _acquire_part(self, batch: FlightBatch, first: int, last: int, room: int) -> int:
        """Take free records of a batch that lie in the range; how many."""
        taken, cap = Acquired(), -1
        limit = self._limits.delivery_count_limit
        at = 0
        while at < len(batch.runs):
            run = batch.runs[at]
            at += 1
            if run.last < first or not run.free:
                continue
            if run.first > last:
                break
            if run.first < first:
                batch.cut(at - 1, first)
                continue
            is_last_time = limit > 2 and run.count == limit - 1
            if is_last_time and taken.count:
                break
            if run.count >= self._throttle_from and cap < 0:
                cap = max(1, batch.size >> (run.count - self._throttle_from + 1))
            size = 1 if is_last_time else min(run.last, last) - run.first + 1
            if self._limited:
                size = min(size, room - taken.count)
            if cap > taken.count:
                size = min(size, cap - taken.count)
            if size < run.size:
                batch.cut(at - 1, run.first + size)
            self._take(run)
            taken.add(run.first, run.last, run.count, join=True)
            if is_last_time or taken.count == cap or (self._limited and taken.count == room):
                break
        if taken.count:
            batch.split = True
            for each in taken.ranges:
                self.acquired.add(*each)
        return taken.count

    def _take(self, run: Run) -> None:
        self._window.change(run, ACQUIRED)
        run.count += 1
        run.member, run.deadline_ms = self._wish.member, self._deadline_ms

    # What is new

    def _add_new(self, first: int, last: int, room: int) -> None:
        """Acquire offsets that are not in the window, at most about `room`."""
        window = self._window
        if not window.batches:
            first = max(first, window.end_offset)
        first = max(first, window.start_offset)
        if first > last:
            return
        end = last
        if room < last - first + 1:
            end = self._end_of_batch(first + room - 1)
            if end > last and window.gap_is_open:
                end = last
        if self._limited and end - first + 1 > room:
            taken_last = first + room - 1
            self._insert(Run(first, taken_last, ACQUIRED, 1), Run(taken_last + 1, end, AVAILABLE, 0))
            window.may_have_free = True
            self.acquired.add(first, taken_last, 1)
        else:
            taken_last = end
            for begin, stop in self._pieces(first, end):
                self._insert(Run(begin, stop, ACQUIRED, 1))
                self.acquired.add(begin, stop, 1)
        if window.batches[0].first == first:
            window.start_offset = first
        window.end_offset = max(window.end_offset, end)
        window.moved_gap(taken_last + 1)

    def _insert(self, run: Run, *rest: Run) -> None:
        run.member, run.deadline_ms = self._wish.member, self._deadline_ms
        self._window.insert(FlightBatch([run, *rest]))

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the log's batch that holds the offset; the offset itself where none does."""
        for batch in self._log:
            if batch.first > offset:
                break
            if batch.last >= offset:
                return batch.last
        return offset

    def _pieces(self, first: int, last: int) -> list[tuple[int, int]]:
        """The range, cut before each batch of the log at which a piece has its size."""
        pieces: list[tuple[int, int]] = []
        size = self._wish.batch_size
        if not self._limited and last - first + 1 > size:
            for batch in self._log:
                if batch.first > last:
                    break
                if batch.first > first and batch.first - first >= size:
                    pieces.append((first, batch.first - 1))
                    first = batch.first
        return [*pieces, (first, last)]
