"""What members say about records that they hold, and which of it is true.

An acknowledgement names a range and what became of it: one type for all of it, or one for each offset. What
lies below the start of the window is passed over. Everything else must be held by the member, else all of the
request's acknowledgements of the partition are refused and none has an effect (a renewed lock stays renewed).

The texts are those that Kafka's clients know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from protocol.errors import ErrorCode
from replication.share.runs import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    NOBODY,
    FlightBatch,
    Run,
    Transition,
)
from replication.share.window import Window


class AckType(IntEnum):
    """What became of a record: there is none at this offset, done, give it to somebody, never again, still
    at work on it.
    """

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_BECOMES = {
    AckType.GAP: ARCHIVED,
    AckType.ACCEPT: ACKNOWLEDGED,
    AckType.RELEASE: AVAILABLE,
    AckType.REJECT: ARCHIVED,
}


class Ack(NamedTuple):
    """One range, inclusive. `types` has one entry, or one for each offset."""

    first: int
    last: int
    types: Sequence[int]


class AckRefused(Exception):
    """The acknowledgement is wrong: 42 or 121."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def check_acks(acks: Sequence[Ack], renew_known: bool, is_renew_ack: bool) -> bool:
    """Whether the form of a partition's acknowledgements is right: ascending ranges, as many types as
    offsets, types that the version knows; locks are renewed by a request that says so.
    """
    before = -1
    most = AckType.RENEW if renew_known else AckType.REJECT
    for first, last, types in acks:
        if first > last or first < before or not types:
            return False
        if len(types) > 1 and len(types) != last - first + 1:
            return False
        if not 0 <= min(types) <= max(types) <= most:
            return False
        if AckType.RENEW in types and not is_renew_ack:
            return False
        before = last
    return True


class Acknowledgement:
    """The acknowledgements of one request for one partition. `transition` holds what they change."""

    def __init__(
        self, window: Window, member: str, delivery_count_limit: int, renewed_until_ms: int, may_renew: bool
    ) -> None:
        self._window, self._member = window, member
        self._limit = delivery_count_limit
        self._renewed_until_ms, self._may_renew = renewed_until_ms, may_renew
        self.transition = Transition()

    def apply(self, ack: Ack) -> None:
        """Stage what one acknowledgement says. AckRefused: the caller rolls the transition back."""
        window = self._window
        if ack.last < window.start_offset:
            return
        batches = self._batches_of(ack)
        segments = list(_segments(ack))
        if not self._may_renew and AckType.RENEW in ack.types:
            raise _wrong_state("Renewing acquisition locks is not enabled for the group.")
        low = max(ack.first, window.start_offset)
        at = 0
        for batch in batches:
            first, last = max(batch.first, low), min(batch.last, ack.last)
            if first > last:
                continue
            self._check(batch, first, last)
            while segments[at][1] < first:
                at += 1
            at = self._apply(batch, first, last, segments, at)

    def _batches_of(self, ack: Ack) -> list[FlightBatch]:
        window = self._window
        floor = window.floor(ack.first)
        if floor is None and ack.first < window.start_offset:
            floor = window.floor(window.start_offset)
        if floor is None:
            raise AckRefused(
                ErrorCode.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        batches = window.beginning_in(floor.first, ack.last)
        end = batches[-1].last
        if ack.last > end:
            which = "first" if end < ack.first else "last"
            raise AckRefused(
                ErrorCode.INVALID_REQUEST,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
        return batches

    def _check(self, batch: FlightBatch, first: int, last: int) -> None:
        """Whether the member holds everything from `first` to `last`."""
        if not batch.split:
            [run] = batch.runs
            if run.member == NOBODY:
                raise _wrong_state(
                    "The batch cannot be acknowledged. The batch is not in the acquired state."
                )
            if run.member != self._member:
                raise _wrong_state("Member is not the owner of batch record")
        for run in batch.touching(first, last):
            if run.state != ACQUIRED:
                raise _wrong_state("The offset cannot be acknowledged. The offset is not acquired.")
            if run.member != self._member:
                raise _wrong_state("Member is not the owner of offset")

    def _apply(
        self, batch: FlightBatch, first: int, last: int, segments: list[tuple[int, int, int]], at: int
    ) -> int:
        """Stage what the segments from index `at` on say of the range; the index of the last one that did."""
        borders, following = [first], at + 1
        while following < len(segments) and segments[following][0] <= last:
            borders.append(segments[following][0])
            following += 1
        batch.cut_at([*borders, last + 1])
        for run in batch.touching(first, last):
            while segments[at][1] < run.first:
                at += 1
            kind = segments[at][2]
            if kind == AckType.RENEW:
                run.deadline_ms = self._renewed_until_ms
            else:
                self.stage(run, _BECOMES[AckType(kind)])
        return at

    def stage(self, run: Run, state: int) -> None:
        """One run goes; what was delivered often enough does not come back."""
        if state == AVAILABLE and run.count >= self._limit:
            state = ARCHIVED
        self._window.stage(run, state, self.transition)


def _segments(ack: Ack) -> Iterator[tuple[int, int, int]]:
    """Neighbouring offsets of one type as (first, last, type)."""
    types = ack.types
    if len(types) == 1:
        yield ack.first, ack.last, types[0]
        return
    first = ack.first
    for offset, kind in enumerate(types, ack.first):
        following = types[offset - ack.first + 1] if offset < ack.last else None
        if following != kind:
            yield first, offset, kind
            first = offset + 1


def _wrong_state(message: str) -> AckRefused:
    return AckRefused(ErrorCode.INVALID_RECORD_STATE, message)
