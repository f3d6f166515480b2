"""The door: loading, unloading, deleting, and events that come late (coordinators.md 1.5 and section 7)."""

from __future__ import annotations

import pytest

from coordinator.group.classic import events as ev
from coordinator.group.classic.events import GroupSettings
from coordinator.group.classic.machine import handle
from coordinator.group.classic.states import GroupState
from protocol.errors import ErrorCode
from tests.unit.coordinator.group.classic.play import Play, stable


def test_a_loaded_stable_group_goes_on_as_it_was() -> None:
    stable(None, "a", "b").run(
        """
        reload |
        state  | Stable 1 a,b
        beat a | a beat NONE
        sync b | b synced 'B'
        join b | b joined 1 range, leader a
        join a |
        join b | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_a_member_that_is_silent_after_the_load_is_removed_one_session_later() -> None:
    stable(None, "a", "b").run(
        """
        wait 9999 |
        reload    |
        wait 9999 |
        beat a    | a beat NONE
        state     | Stable 1 a,b
        wait 1    |
        state     | PreparingRebalance 1 a
        """
    )


def test_a_loaded_empty_group_takes_members() -> None:
    stable(None, "a").run(
        """
        leave a    | a left NONE NONE
        reload     |
        state      | Empty 2
        join b v=3 |
        wait 3000  | b joined 3 range, leader b of b
        """
    )


def test_a_loaded_member_supports_the_recorded_protocol_alone_until_it_joins() -> None:
    stable(None, "a", protocols="range:x,rr:x").run(
        """
        reload                           |
        join b v=3 protocols=rr:x        | b join INCONSISTENT_GROUP_PROTOCOL
        join a protocols=range:x,rr:x    | a joined 2 range, leader a of a
        join b v=3 protocols=rr:x        |
        """
    )


def test_a_group_that_is_loaded_too_large_rebalances_and_shrinks() -> None:
    play = stable(None, "a", "b", "c")
    play.settings = GroupSettings(max_size=2)
    play.run(
        """
        reload |
        state  | PreparingRebalance 1 a,b,c
        join c |
        join a |
        join b | b join GROUP_MAX_SIZE_REACHED; a joined 2 range, leader a of a,c; c joined 2 range, leader a
        state  | CompletingRebalance 2 a,c
        """
    )


def test_a_restart_in_the_middle_of_a_rebalance_brings_back_the_last_generation() -> None:
    stable(None, "a", "b").run(
        """
        join c v=3  |
        join a      |
        reload      | a join NOT_COORDINATOR; c join NOT_COORDINATOR
        state       | Stable 1 a,b
        join c v=3  |
        beat b      | b beat REBALANCE_IN_PROGRESS
        join a      |
        join b      | a joined 2 range, leader a of a,b,c
                    | b joined 2 range, leader a
                    | c joined 2 range, leader a
        """
    )


def test_a_group_that_is_loaded_without_leader_rebalances() -> None:
    play = stable(None, "a", "b")
    value = play.log[-1].value
    assert value is not None
    value.leader = None
    play.run(
        """
        reload |
        beat a | a beat REBALANCE_IN_PROGRESS
        join b |
        join a | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_members_that_are_loaded_without_protocol_join_as_new_ones() -> None:
    play = stable(None, "a")
    value = play.log[-1].value
    assert value is not None
    value.protocol = None
    play.run(
        """
        reload         |
        beat a         | a beat UNKNOWN_MEMBER_ID
        join a id=none | a join MEMBER_ID_REQUIRED
        join a         |
        wait 3000      | a joined 2 range, leader a of a
        """
    )


def test_unloading_answers_what_is_parked_and_kills_the_group() -> None:
    stable(None, "a", "b").run(
        """
        join c v=3 |
        join a     |
        join d     | d join MEMBER_ID_REQUIRED
        unload     | a join NOT_COORDINATOR; c join NOT_COORDINATOR
        beat b     | b beat COORDINATOR_NOT_AVAILABLE
        """
    )
    play = Play()
    play.run(
        """
        join a v=3 |
        join b v=3 |
        wait 6000  | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        sync b     |
        hold       |
        sync a     |
        unload     | a sync NOT_COORDINATOR; b sync NOT_COORDINATOR
        commit     |
        """
    )


@pytest.mark.parametrize(
    "event",
    [
        ev.SessionExpired("a"),
        ev.PendingMemberExpired("a"),
        ev.InitialDelayOver(),
        ev.RebalanceDeadline(),
        ev.SyncDeadline(1),
        ev.RecordsCommitted(0),
        ev.RecordsFailed(0, ErrorCode.NOT_ENOUGH_REPLICAS),
        ev.Loaded(),
        ev.Unloaded(),
        ev.Deleted(),
    ],
)
def test_nothing_happens_to_a_dead_group(event: ev.Event) -> None:
    play = stable(None, "a")
    play.do_unload()
    out = handle(play.existing(), event, play.now_ms)
    assert (out.records, out.timers, out.replies) == ([], [], [])


@pytest.mark.parametrize(
    "event",
    [
        ev.SessionExpired("nobody"),
        ev.PendingMemberExpired("nobody"),
        ev.InitialDelayOver(),
        ev.RebalanceDeadline(),
        ev.SyncDeadline(0),
        ev.SyncDeadline(1),
        ev.RecordsCommitted(99),
        ev.RecordsFailed(99, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_events_that_come_late_change_nothing(event: ev.Event) -> None:
    play = stable(None, "a", "b")
    out = handle(play.existing(), event, play.now_ms)
    assert (out.records, out.timers, out.replies) == ([], [], [])
    assert play.existing().state is GroupState.STABLE


def test_a_deleted_group_is_dead_and_has_no_timers() -> None:
    play = stable(None, "a")
    play.run(
        """
        hold    |
        leave a |
        join b  | b join MEMBER_ID_REQUIRED
        """
    )
    play.tell(ev.Deleted())
    assert play.heard[-1] == "a left NONE NONE"
    assert play.existing().state is GroupState.DEAD
    assert not play.timers


def test_the_log_says_why() -> None:
    play = stable(None, "a", "b")
    play.run("leave b | b left NONE NONE")
    assert any("prepares to rebalance from generation 1" in note for note in play.notes)
    assert any("client reason: not provided" in note for note in play.notes)
    assert any("generation 1: 2 members, leader a-" in note for note in play.notes)
