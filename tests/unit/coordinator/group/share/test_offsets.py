"""Steps of altering and deleting, by the records they write (the way of a request is in test_requests)."""

from __future__ import annotations

import pytest

from coordinator.group.share.offsets import (
    Refused,
    begin_alter,
    begin_delete_group,
    begin_delete_offsets,
    end_delete_offsets,
    settle_initialized,
)
from coordinator.group.share.state_partitions import StatePartitions, StateTopic, read_state
from coordinator.result import CoordinatorRecord
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.share.play import GROUP, Play, settled


def states(records: list[CoordinatorRecord]) -> list[StatePartitions | None]:
    return [None if each.value is None else read_state(each.value, 0) for each in records]


def test_altering_adds_to_what_is_being_made() -> None:
    play = Play({"t": 2, "u": 1})
    play.alter({"u": {0: 0}})
    result = begin_alter(play.groups, GROUP, {"t": {1: 5, 2: 0, -1: 0}})
    assert result.response.start_offsets == {play.id("t"): {1: 5}}
    [state] = states(result.records)
    assert state == StatePartitions(
        {play.id("u"): StateTopic("u", frozenset({0})), play.id("t"): StateTopic("t", frozenset({1}))}
    )


def test_what_changes_nothing_writes_nothing() -> None:
    play = Play({"t": 1})
    assert settle_initialized(play.groups, GROUP, {play.id(): [0]}, {}).records == []
    assert end_delete_offsets(play.groups, GROUP, [play.id()]).records == []
    play.alter({"t": {0: 0}})
    play.answer()
    assert begin_delete_offsets(play.groups, GROUP, ["absent"]).records == []
    assert end_delete_offsets(play.groups, GROUP, [play.id()]).records == []


def test_a_group_that_never_had_state_has_nothing_to_delete() -> None:
    play = Play({})
    a = play.client("a", "absent")
    a.join()
    a.leave()
    assert begin_delete_group(play.groups, GROUP).response == {}
    [(plan, _)] = play.delete_offsets("absent")
    assert (plan.partitions, plan.refused) == ({}, {})


def test_refusals() -> None:
    play = Play()
    with pytest.raises(Refused) as absent:
        begin_delete_group(play.groups, GROUP)
    assert (absent.value.error, absent.value.text) == (E.GROUP_ID_NOT_FOUND, "Group g not found.")
    settled(play, play.client("a"))
    with pytest.raises(Refused) as busy:
        begin_delete_group(play.groups, GROUP)
    assert busy.value.error is E.NON_EMPTY_GROUP
