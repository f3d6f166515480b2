"""SyncGroup (coordinators.md 3.5)."""

from __future__ import annotations

import pytest

from coordinator.group.classic.events import SyncDeadline
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from tests.unit.coordinator.group.classic.play import START_MS, Play, stable


def completing() -> Play:
    """Three members of generation 1 that have not synced; a leads."""
    play = Play()
    play.run(
        """
        join a v=3 |
        join b v=3 |
        join c v=3 |
        wait 6000  | a joined 1 range, leader a of a,b,c
                   | b joined 1 range, leader a
                   | c joined 1 range, leader a
        """
    )
    return play


def test_followers_are_parked_and_answered_together_with_the_leader() -> None:
    completing().run(
        """
        sync b                         |
        sync c                         |
        state                          | CompletingRebalance 1 a,b,c
        sync a assign=a:1,b:2,c:3      | a synced '1'; b synced '2'; c synced '3'
        state                          | Stable 1 a,b,c
        """
    )


def test_a_follower_that_syncs_late_is_answered_at_once() -> None:
    completing().run(
        """
        sync a assign=a:1,b:2,c:3 | a synced '1'
        sync b                    | b synced '2'
        sync b                    | b synced '2'
        """
    )


def test_a_member_that_the_leader_forgot_gets_empty_bytes() -> None:
    completing().run(
        """
        sync c               |
        sync a assign=a:1    | a synced '1'; c synced ''
        """
    )


def test_an_assignment_for_strangers_is_not_recorded() -> None:
    play = completing()
    play.run("sync a assign=a:1,none:9 | a synced '1'")
    value = play.log[-1].value
    assert value is not None
    assert [each.member_id for each in value.members] == list(play.existing().members)


def test_nobody_learns_of_an_assignment_before_it_is_committed() -> None:
    completing().run(
        """
        hold                      |
        sync b                    |
        sync a assign=a:1,b:2,c:3 |
        sync c                    |
        state                     | CompletingRebalance 1 a,b,c
        commit                    | a synced '1'; b synced '2'; c synced '3'
        state                     | Stable 1 a,b,c
        """
    )


def test_the_record_tells_the_generation_that_becomes_stable() -> None:
    play = completing()
    play.run("sync a assign=a:1,b:2,c:3 | a synced '1'")
    value = play.log[-1].value
    assert value is not None
    assert (value.protocol_type, value.generation, value.protocol) == ("consumer", 1, "range")
    assert value.leader == play.ids["a"][0]
    assert value.current_state_timestamp == START_MS + 6000
    assert [each.assignment for each in value.members] == [b"1", b"2", b"3"]
    assert [each.subscription for each in value.members] == [b"x", b"x", b"x"]


@pytest.mark.parametrize(
    ("log_error", "heard"),
    [
        ("NOT_ENOUGH_REPLICAS", "COORDINATOR_NOT_AVAILABLE"),
        ("NOT_LEADER_OR_FOLLOWER", "NOT_COORDINATOR"),
        ("MESSAGE_TOO_LARGE", "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_an_assignment_that_is_not_written_goes_to_nobody(log_error: str, heard: str) -> None:
    play = completing()
    play.run(
        f"""
        hold                      |
        sync b                    |
        sync a assign=a:1,b:2,c:3 |
        fail {log_error}          | a sync {heard}; b sync {heard}
        state                     | PreparingRebalance 1 a,b,c
        beat c                    | c beat REBALANCE_IN_PROGRESS
        """
    )
    assert all(member.assignment == b"" for member in play.existing().members.values())


def test_a_session_begins_when_the_assignment_is_committed() -> None:
    play = stable(None, "a")
    play.run(
        """
        join a     | a joined 2 range, leader a of a
        hold       |
        sync a     |
        wait 15000 |
        state      | CompletingRebalance 2 a
        commit     | a synced ''
        wait 9999  |
        state      | Stable 2 a
        wait 1     |
        state      | Empty 3
        """
    )


def test_the_deadline_of_another_generation_removes_nobody() -> None:
    play = completing()
    play.tell(SyncDeadline(0))
    play.run("state | CompletingRebalance 1 a,b,c")


def test_a_write_that_ends_after_a_new_rebalance_began_changes_nothing() -> None:
    completing().run(
        """
        hold                      |
        sync a assign=a:1,b:2,c:3 |
        join b protocols=range:z  | a sync REBALANCE_IN_PROGRESS
        commit                    |
        state                     | PreparingRebalance 1 a,b,c
        """
    )


def test_a_write_of_the_last_generation_does_not_settle_this_one() -> None:
    completing().run(
        """
        hold                      |
        sync a assign=a:1,b:2,c:3 |
        join b protocols=range:z  | a sync REBALANCE_IN_PROGRESS
        join a                    |
        join c                    | a joined 2 range, leader a of a,b,c
                                  | b joined 2 range, leader a
                                  | c joined 2 range, leader a
        sync b                    |
        fail NOT_ENOUGH_REPLICAS  |
        state                     | CompletingRebalance 2 a,b,c
        sync a assign=b:new       |
        commit                    | a synced ''; b synced 'new'
        """
    )


def test_a_rebalance_answers_parked_syncs() -> None:
    completing().run(
        """
        sync b     |
        sync c     |
        join d v=3 | b sync REBALANCE_IN_PROGRESS; c sync REBALANCE_IN_PROGRESS
        sync a     | a sync REBALANCE_IN_PROGRESS
        """
    )


def test_a_repeated_sync_of_the_leader_does_not_write_twice() -> None:
    play = completing()
    play.run(
        """
        hold                |
        sync a assign=a:1   |
        sync a assign=a:2   | a sync REBALANCE_IN_PROGRESS
        commit              | a synced '1'
        """
    )
    assert not play.writes


def test_syncs_that_do_not_fit() -> None:
    play = completing()
    play.ids["x"] = ["made-up"]
    play.run(
        """
        sync x                 | x sync UNKNOWN_MEMBER_ID
        sync none              | none sync UNKNOWN_MEMBER_ID
        sync b gen=0           | b sync ILLEGAL_GENERATION
        sync b gen=2           | b sync ILLEGAL_GENERATION
        sync b instance=i      | b sync UNKNOWN_MEMBER_ID
        sync b type=connect    | b sync INCONSISTENT_GROUP_PROTOCOL
        sync b protocol=rr     | b sync INCONSISTENT_GROUP_PROTOCOL
        sync b type=consumer protocol=range |
        state                  | CompletingRebalance 1 a,b,c
        """
    )


def test_an_id_that_was_handed_out_cannot_sync() -> None:
    stable(None, "a").run(
        """
        join b | b join MEMBER_ID_REQUIRED
        sync b | b sync UNKNOWN_MEMBER_ID
        """
    )


@pytest.mark.parametrize("version", range(6))
def test_every_version_gets_its_assignment(version: int) -> None:
    play = completing()
    play.run(f"sync a v={version} assign=a:1 | a synced '1'")
    response = list(play.replies.values())[-1]
    assert isinstance(response, m.SyncGroupResponse)
    decoded, _ = m.SyncGroupResponse.decode(version, response.encode(version))
    assert decoded.protocol_name == ("range" if version >= 5 else None)


def test_who_has_not_synced_at_the_deadline_is_removed() -> None:
    completing().run(
        """
        sync b     |
        wait 9000  |
        beat a     | a beat NONE
        beat c     | c beat NONE
        wait 9000  |
        beat a     | a beat NONE
        beat c     | c beat NONE
        wait 9000  |
        beat a     | a beat NONE
        beat c     | c beat NONE
        wait 9000  |
        beat a     | a beat NONE
        beat c     | c beat NONE
        wait 9000  |
        beat a     | a beat NONE
        beat c     | c beat NONE
        wait 9000  |
        beat a     | a beat NONE
        beat c     | c beat NONE
        wait 5999  |
        wait 1     | b sync REBALANCE_IN_PROGRESS
        beat a     | a beat UNKNOWN_MEMBER_ID
        beat b     | b beat REBALANCE_IN_PROGRESS
        join b     | b joined 2 range, leader b of b
        """
    )


def test_who_never_syncs_is_removed_though_the_group_is_long_stable() -> None:
    play = completing()
    play.run("sync a assign=a:1,b:2,c:3 | a synced '1'")
    play.run("sync b | b synced '2'")
    for _ in range(7):
        play.do_wait("8000")
        for name in "abc":
            play.do_beat(name)
    play.run(
        """
        state     | Stable 1 a,b,c
        wait 4000 |
        state     | PreparingRebalance 1 a,b
        beat c    | c beat UNKNOWN_MEMBER_ID
        beat a    | a beat REBALANCE_IN_PROGRESS
        """
    )


def test_when_all_have_synced_the_deadline_is_off() -> None:
    play = stable(None, "a", "b")
    assert not [key for key in play.timers if key.kind == "sync"]


def test_a_leader_that_crashes_before_its_sync() -> None:
    play = Play()
    play.run(
        """
        join a v=3 session=6000  |
        join b v=3 session=60000 |
        wait 6000                | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        sync b                   |
        wait 6000                | b sync REBALANCE_IN_PROGRESS
        join b session=60000     | b joined 2 range, leader b of b
        sync b assign=b:all      | b synced 'all'
        sync a gen=1             | a sync UNKNOWN_MEMBER_ID
        """
    )
    assert play.existing().state is GroupState.STABLE


def test_a_member_that_leaves_with_a_parked_sync_is_answered() -> None:
    completing().run(
        """
        sync b  |
        leave b | b sync UNKNOWN_MEMBER_ID; b left NONE NONE
        """
    )


def test_sync_in_other_states() -> None:
    play = Play()
    play.run("sync a | a sync UNKNOWN_MEMBER_ID")
    assert play.group is None
    play = stable(None, "a")
    play.run(
        """
        leave a | a left NONE NONE
        sync a  | a sync UNKNOWN_MEMBER_ID
        unload  |
        sync a  | a sync COORDINATOR_NOT_AVAILABLE
        """
    )
