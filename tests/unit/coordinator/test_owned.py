"""What a partition does with its parked responses when the log has decided."""

from __future__ import annotations

from coordinator.journal import Journal
from coordinator.owned import Context, OwnedPartition, Parked, State
from coordinator.timer import KeyedTimers
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.memory_topic import VirtualTime
from tests.unit.coordinator.offset_shard import OffsetShard


class Held:
    """A partition with parked responses, two records each, and what they were told."""

    def __init__(self, count: int) -> None:
        context = Context(0, Journal(), KeyedTimers(VirtualTime()), lambda *_: None, lambda *_: None)
        self.partition = OwnedPartition(OffsetShard(context), context, State.ACTIVE, 1)
        self.told: list[tuple[int, E, object]] = []
        self.undone: list[int] = []
        self.parked = [self.park(number) for number in range(count)]

    def park(self, number: int) -> Parked:
        def done(error: E, response: object) -> None:
            self.told.append((number, error, response))

        parked = Parked(self.partition, f"r{number}", done, lambda: self.undone.append(number))
        parked.base_offset, parked.end_offset = number * 2, number * 2 + 2
        self.partition.parked.append(parked)
        self.partition.appended_end = parked.end_offset
        return parked


def test_a_commit_answers_all_up_to_it_in_order() -> None:
    held = Held(3)
    held.parked[1].settle(E.NONE)
    assert held.told == [(0, E.NONE, "r0"), (1, E.NONE, "r1")]
    held.parked[0].settle(E.NONE)  # it is answered already
    held.parked[2].settle(E.NONE)
    assert held.told[2:] == [(2, E.NONE, "r2")]
    assert held.undone == []


def test_a_failure_takes_those_behind_it_along() -> None:
    held = Held(3)
    held.parked[1].settle(E.KAFKA_STORAGE_ERROR)
    assert held.told == [(1, E.NOT_COORDINATOR, None), (2, E.NOT_COORDINATOR, None)]
    assert held.undone == [2, 1]
    assert held.partition.appended_end == 2
    held.parked[2].settle(E.KAFKA_STORAGE_ERROR)
    held.parked[0].settle(E.NONE)
    assert held.told[2:] == [(0, E.NONE, "r0")]


def test_nothing_is_decided_once_the_partition_has_gone() -> None:
    held = Held(1)
    held.partition.state = State.CLOSED
    held.parked[0].settle(E.NONE)
    assert held.told == []


def test_who_was_answered_in_the_meantime_is_not_answered_again() -> None:
    held = Held(2)
    held.parked[0].done = None
    held.parked[1].settle(E.NONE)
    assert held.told == [(1, E.NONE, "r1")]
