"""What is done at once, in the next passes of the loop, and again."""

from __future__ import annotations

from broker.transaction.pace import AGAIN_AT_ONCE, AT_ONCE, RETRY_MS, Pace
from tests.unit.broker.transaction.stage import Timer


class Stage:
    def __init__(self) -> None:
        self.timer = Timer()
        self.pace = Pace(self.timer)
        self.done: list[str] = []

    def soon(self, name: str, weight: int = 1) -> None:
        self.pace.soon(weight, lambda: self.done.append(name))

    def again(self, name: str, weight: int = 1) -> None:
        self.pace.again(weight, lambda: self.done.append(name))

    @property
    def delays(self) -> list[int]:
        return [delay_ms for delay_ms, _ in self.timer.waiting]


def test_little_is_done_at_once_and_leaves_no_timer_behind() -> None:
    stage = Stage()
    stage.soon("a"), stage.soon("b")
    assert (stage.done, stage.delays) == (["a", "b"], [0])
    stage.timer.ring()
    assert stage.delays == []


def test_much_is_done_in_turns_and_in_order() -> None:
    stage = Stage()
    for name in "abc":
        stage.soon(name, AT_ONCE)
    assert (stage.done, stage.delays) == (["a"], [0])
    stage.soon("d")
    stage.timer.ring()
    assert (stage.done, stage.delays) == (["a", "b"], [0])
    stage.timer.ring()
    stage.timer.ring()
    assert stage.done == ["a", "b", "c", "d"]


def test_after_what_is_for_the_next_turn_nothing_is_done_in_this_one() -> None:
    stage = Stage()
    stage.soon("a")
    stage.pace.next(1, lambda: stage.done.append("b"))
    stage.soon("c")
    assert (stage.done, stage.delays) == (["a"], [0])
    stage.timer.ring()
    assert (stage.done, stage.delays) == (["a", "b", "c"], [0])


def test_what_work_leads_to_comes_after_it() -> None:
    stage = Stage()

    def work() -> None:
        stage.soon("inner")
        stage.done.append("outer")

    stage.pace.soon(1, work)
    assert stage.done == ["outer", "inner"]


def test_what_is_to_be_done_again_waits_and_so_does_what_is_too_much() -> None:
    stage = Stage()
    for number in range(AGAIN_AT_ONCE + 1):
        stage.again(str(number))
    assert (stage.done, stage.delays) == ([], [RETRY_MS])
    stage.timer.ring()
    assert sorted(stage.delays) == [0, RETRY_MS]
    while stage.timer.waiting:
        stage.timer.ring()
    assert stage.done == [str(number) for number in range(AGAIN_AT_ONCE + 1)]


def test_what_fails_again_waits_again() -> None:
    stage = Stage()

    def work() -> None:
        stage.done.append("x")
        stage.pace.again(1, work)

    stage.pace.again(1, work)
    stage.timer.ring()
    assert (stage.done, sorted(stage.delays)) == (["x"], [0, RETRY_MS])
