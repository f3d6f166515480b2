"""When targets are computed, and what is written of them."""

import pytest

from coordinator.group.modern.records import CONSUMER, TargetEpoch, target_epoch_record, target_record
from coordinator.group.modern.target import MemberSpec, complete, may_compute, target_records

A = b"a" * 16
ONE, TWO = {A: frozenset({1})}, {A: frozenset({2})}


@pytest.mark.parametrize(
    ("last_ms", "interval_ms", "now_ms", "wanted"),
    [(0, 1000, 5, True), (100, 0, 100, True), (100, 1000, 1099, False), (100, 1000, 1100, True)],
)
def test_not_more_often_than_the_interval(last_ms: int, interval_ms: int, now_ms: int, wanted: bool) -> None:
    assert may_compute(TargetEpoch(3, last_ms), interval_ms, now_ms) is wanted


def test_only_changes_are_written_and_the_epoch_last() -> None:
    epoch = TargetEpoch(4, 9)
    records = target_records(CONSUMER, "g", epoch, {"a": ONE, "b": ONE}, {"a": ONE, "b": TWO, "c": {}})
    assert records == [
        target_record(CONSUMER, "g", "b", TWO),
        target_record(CONSUMER, "g", "c", {}),
        target_epoch_record(CONSUMER, "g", epoch),
    ]


def test_members_that_got_nothing_are_named() -> None:
    members = {each: MemberSpec(frozenset(), {}) for each in "ab"}
    assert complete({"b": ONE}, members) == {"a": {}, "b": ONE}
