"""Steps of one member towards its target."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.consumer.member import Current, MemberState
from coordinator.group.consumer.reconcile import MustRejoin, Step, reconcile

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED, UNKNOWN = MemberState


def step(epoch: int, target: dict[bytes, set[int]], owned: Any = None, **fields: Any) -> Step:
    holders = fields.pop("holders", {})
    topics = fields.pop("topics", frozenset({T, U}))
    wanted = {topic: frozenset(numbers) for topic, numbers in target.items()}
    has = None if owned is None else {topic: frozenset(numbers) for topic, numbers in owned.items()}
    return Step(
        "m", epoch, wanted, has, lambda: topics, lambda topic, number: holders.get((topic, number)), **fields
    )


def test_a_new_member_gets_what_is_free() -> None:
    now = reconcile(Current(), step(3, {T: {0, 1}}, {}))
    assert now == Current(3, 0, STABLE, {T: {0: 3, 1: 3}})


def test_nothing_changes_at_the_target() -> None:
    current = Current(3, 2, STABLE, {T: {0: 3}})
    assert reconcile(current, step(3, {T: {0}})) is current


def test_what_it_keeps_keeps_its_epoch() -> None:
    now = reconcile(Current(3, 2, STABLE, {T: {0: 1}}), step(4, {T: {0, 1}}))
    assert now == Current(4, 3, STABLE, {T: {0: 1, 1: 4}})


def test_revocation_comes_first_and_the_epoch_stays() -> None:
    current = Current(3, 2, STABLE, {T: {0: 3, 1: 3}})
    for owned in (None, {T: {0, 1}}, {T: {1}}):
        now = reconcile(current, step(4, {T: {0}, U: {0}}, owned))
        assert now == Current(3, 3, UNREVOKED, {T: {0: 3}}, {T: {1: 3}})
    told = Current(3, 3, UNREVOKED, {T: {0: 3}}, {T: {1: 3}})
    assert reconcile(told, step(4, {T: {0}}, {T: {0, 1}})) is told
    assert reconcile(told, step(4, {T: {0}}, None)) is told
    assert reconcile(told, step(4, {T: {0}}, {T: {0}})) == Current(4, 3, STABLE, {T: {0: 3}})


def test_who_has_given_it_up_already_goes_on_at_once() -> None:
    now = reconcile(Current(3, 2, STABLE, {T: {0: 3, 1: 3}}), step(4, {T: {0}}, {T: {0}}))
    assert now == Current(4, 3, STABLE, {T: {0: 3}})


def test_what_others_hold_is_waited_for() -> None:
    wanted = {T: {0, 1}}
    now = reconcile(Current(), step(3, wanted, {}, holders={(T, 1): "other"}))
    assert now == Current(3, 0, UNRELEASED, {T: {0: 3}})
    again = reconcile(now, step(3, wanted, None, holders={(T, 1): "other", (T, 0): "m"}))
    assert again == Current(3, 3, UNRELEASED, {T: {0: 3}})
    assert reconcile(now, step(3, wanted)) == Current(3, 3, STABLE, {T: {0: 3, 1: 3}})


def test_its_own_revoked_partition_may_come_back() -> None:
    told = Current(3, 3, UNREVOKED, {}, {T: {1: 3}})
    now = reconcile(told, step(5, {T: {1}}, {}, holders={(T, 1): "m"}))
    assert now == Current(5, 3, STABLE, {T: {1: 5}})


def test_unsubscribed_topics_go_before_there_is_a_new_target() -> None:
    current = Current(3, 2, STABLE, {T: {0: 3}, U: {0: 3}})
    only_t = frozenset({T})
    now = reconcile(current, step(3, {T: {0}, U: {0}}, None, topics=only_t, subscription_changed=True))
    assert now == Current(3, 3, UNREVOKED, {T: {0: 3}}, {U: {0: 3}})
    now = reconcile(current, step(3, {T: {0}, U: {0}}, {T: {0}}, topics=only_t, subscription_changed=True))
    assert now == Current(3, 3, STABLE, {T: {0: 3}})
    same = step(3, {T: {0}, U: {0}}, None, subscription_changed=True)
    assert reconcile(current, same) is current
    told = Current(3, 3, UNREVOKED, {T: {0: 3}}, {T: {1: 3}})
    now = reconcile(told, step(4, {}, None, topics=frozenset(), subscription_changed=True))
    assert now == Current(3, 3, UNREVOKED, {}, {T: {0: 3, 1: 3}})


def test_a_target_of_topics_it_does_not_subscribe_to_is_not_taken() -> None:
    now = reconcile(Current(), step(3, {T: {0}, U: {0}}, {}, topics=frozenset({T})))
    assert now.assigned == {T: {0: 3}}


def test_an_unknown_state_asks_for_a_fresh_start() -> None:
    current = Current(3, 2, UNKNOWN, {T: {0: 3}})
    for owned in (None, {T: {0}}):
        with pytest.raises(MustRejoin):
            reconcile(current, step(4, {T: {0}}, owned))
    assert reconcile(current, step(4, {T: {0}}, {})).state is STABLE
