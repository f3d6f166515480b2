"""Work in pieces: at once where it is small, beside everything else where it is not."""

from __future__ import annotations

import pytest

from coordinator.group.assignors import builtin
from coordinator.group.modern import steps
from coordinator.group.modern.assignment import Assignment, size
from coordinator.group.modern.steps import PIECE, PIECES_AT_ONCE, LongWork, Pace, Steps, outcome
from coordinator.group.modern.target import Assignor, MemberSpec
from coordinator.group.share.assignor import SimpleAssignor
from coordinator.result import CoordinatorError
from coordinator.timer import KeyedTimers
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.memory_topic import VirtualTime


def counted(pieces: int, seen: list[int] | None = None, error: Exception | None = None) -> Steps[str]:
    for number in range(pieces):
        if seen is not None:
            seen.append(number)
        yield
    if error is not None:
        raise error
    return "done"


class Play:
    def __init__(self) -> None:
        self.time = VirtualTime()
        self.timers = KeyedTimers(self.time)
        self.work = LongWork("kind", self.timers)
        self.told: list[str] = []

    def begin(self, pieces: int, seen: list[int] | None = None, error: Exception | None = None) -> str | None:
        return self.work.begin("g", counted(pieces, seen, error), self.told.append)


def test_a_pace_tells_when_a_piece_is_full() -> None:
    pace = Pace()
    assert [pace.over(PIECE // 2) for _ in range(5)] == [False, True, False, True, False]
    assert pace.over(3 * PIECE)


def test_the_outcome_without_a_pause() -> None:
    assert outcome(counted(7)) == "done"


@pytest.mark.parametrize("pieces", range(PIECES_AT_ONCE))
def test_small_work_is_done_at_once(pieces: int) -> None:
    play = Play()
    assert play.begin(pieces) == "done"
    assert not play.work.goes_on("g")
    assert len(play.timers) == 0


def test_long_work_goes_on_a_piece_a_turn() -> None:
    play, seen = Play(), list[int]()
    assert play.begin(PIECES_AT_ONCE + 2, seen) is None
    assert (len(seen), play.told) == (PIECES_AT_ONCE, [])
    for turn in (1, 2):
        assert play.work.goes_on("g")
        play.time.advance(1)
        assert (len(seen), play.told) == (PIECES_AT_ONCE + turn, [])
    play.time.advance(1)
    assert play.told == ["done"]
    assert not play.work.goes_on("g")
    assert not play.work.goes_on("other")


def test_what_is_forgotten_comes_to_nothing() -> None:
    play = Play()
    play.begin(9)
    play.work.forget("other")
    assert play.work.goes_on("g")
    play.work.forget("g")
    play.time.advance(50)
    assert (play.told, play.work.goes_on("g")) == ([], False)


def test_an_unload_ends_it() -> None:
    play = Play()
    play.begin(9)
    play.timers.cancel_all()
    play.time.advance(50)
    assert play.told == []


def test_a_refusal_comes_through_at_first_and_ends_the_work_later() -> None:
    play, refusal = Play(), CoordinatorError(E.UNKNOWN_SERVER_ERROR)
    with pytest.raises(CoordinatorError):
        play.begin(0, error=refusal)
    assert play.begin(PIECES_AT_ONCE, error=refusal) is None
    play.time.advance(1)
    assert (play.told, play.work.goes_on("g")) == ([], False)


def paused(work: Steps[dict[str, Assignment]]) -> tuple[int, int]:
    """How often it pauses, and how many partitions it assigns."""
    for pauses in range(1_000_000):
        try:
            next(work)
        except StopIteration as end:
            targets: dict[str, Assignment] = end.value
            return pauses, sum(map(size, targets.values()))
    raise AssertionError("it does not end")


@pytest.mark.parametrize("assignor", [*builtin().values(), SimpleAssignor()], ids=lambda each: each.name)
@pytest.mark.parametrize("alike", [True, False])
def test_assignors_pause(monkeypatch: pytest.MonkeyPatch, assignor: Assignor, alike: bool) -> None:
    monkeypatch.setattr(steps, "PIECE", 1)
    topics = [bytes([number]) * 16 for number in range(8)]
    reads = [frozenset(topics if alike else topics[: 1 + each]) for each in range(8)]
    members = {str(each): MemberSpec(topics, {}) for each, topics in enumerate(reads)}
    pauses, partitions = paused(assignor.assign(members, {topic: range(8) for topic in topics}))
    assert partitions == 64
    assert pauses >= 16
