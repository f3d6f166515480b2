"""Static members that restart (coordinators.md 3.4)."""

from __future__ import annotations

import pytest

from coordinator.group.classic.events import GroupSettings
from protocol import messages as m
from tests.unit.coordinator.group.classic.play import Play, stable


def static_pair(settings: GroupSettings | None = None) -> Play:
    """A Stable group of two static members; a leads."""
    play = Play(settings or GroupSettings())
    play.run(
        """
        join a instance=ia        |
        join b instance=ib        |
        wait 6000                 | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        sync b                    |
        sync a assign=a:A,b:B     | a synced 'A'; b synced 'B'
        """
    )
    return play


def test_a_new_instance_needs_no_second_join() -> None:
    play = Play()
    play.run(
        """
        join a instance=ia |
        wait 3000          | a joined 1 range, leader a of a
        """
    )
    assert play.ids["a"][0].startswith("ia-")


def test_a_follower_that_restarts_keeps_generation_and_assignment() -> None:
    play = static_pair()
    play.run(
        """
        join b id=none instance=ib | b joined 1 range, leader a
        state                      | Stable 1 a,b
        sync b instance=ib         | b synced 'B'
        beat b instance=ib         | b beat NONE
        beat b id=b.0 instance=ib  | b beat FENCED_INSTANCE_ID
        """
    )
    assert len(play.ids["b"]) == 2
    value = play.log[-1].value
    assert value is not None
    assert [each.member_id for each in value.members] == [play.ids["a"][0], play.ids["b"][1]]
    assert [each.assignment for each in value.members] == [b"A", b"B"]


def test_the_older_of_two_with_one_instance_id_is_fenced_everywhere() -> None:
    static_pair().run(
        """
        join b id=none instance=ib | b joined 1 range, leader a
        beat b id=b.0 instance=ib  | b beat FENCED_INSTANCE_ID
        sync b id=b.0 instance=ib  | b sync FENCED_INSTANCE_ID
        join b id=b.0 instance=ib  | b join FENCED_INSTANCE_ID
        leave b.0@ib               | b left NONE FENCED_INSTANCE_ID
        beat b id=b.0              | b beat UNKNOWN_MEMBER_ID
        """
    )


def test_a_leader_that_restarts_at_version_9_leads_and_skips_the_assignment() -> None:
    static_pair().run(
        """
        join a id=none instance=ia | a joined 1 range, leader a of b,a, skip
        sync a instance=ia         | a synced 'A'
        """
    )


@pytest.mark.parametrize("version", range(5, 9))
def test_a_leader_that_restarts_before_version_9_is_shown_its_old_id(version: int) -> None:
    play = static_pair()
    play.run(
        f"""
        join a id=none instance=ia v={version} | a joined 1 range, leader a.0
        sync a instance=ia                     | a synced 'A'
        """
    )
    assert play.existing().leader_id == play.ids["a"][1]


def test_the_new_leader_id_leads_the_next_generation() -> None:
    static_pair().run(
        """
        join a id=none instance=ia v=8 | a joined 1 range, leader a.0
        join a instance=ia             |
        join b instance=ib             | b joined 2 range, leader a; a joined 2 range, leader a of b,a
        """
    )


def test_a_restart_that_changes_the_vote_rebalances() -> None:
    play = Play()
    play.run(
        """
        join a instance=ia protocols=range:,rr: |
        join b instance=ib protocols=range:,rr: |
        wait 6000 | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        sync b    |
        sync a    | a synced ''; b synced ''
        join b id=none instance=ib protocols=rr: |
        beat a    | a beat REBALANCE_IN_PROGRESS
        join a instance=ia protocols=range:,rr: | a joined 2 rr, leader a of a,b
                                                | b joined 2 rr, leader a
        """
    )


def test_a_changed_subscription_with_the_same_vote_does_not_rebalance_but_is_recorded() -> None:
    play = static_pair()
    play.run("join b id=none instance=ib protocols=range:more | b joined 1 range, leader a")
    value = play.log[-1].value
    assert value is not None
    assert [each.subscription for each in value.members] == [b"x", b"more"]


def test_a_restart_in_completing_rebalance_fences_the_parked_sync_and_rebalances() -> None:
    play = Play()
    play.run(
        """
        join a instance=ia         |
        join b instance=ib         |
        wait 6000                  | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        sync b                     |
        join b id=none instance=ib | b sync FENCED_INSTANCE_ID
        state                      | PreparingRebalance 1 a,ib
        join a instance=ia         | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_a_restart_in_preparing_rebalance_fences_the_parked_join() -> None:
    static_pair().run(
        """
        join b instance=ib protocols=range:z       |
        join b id=none instance=ib protocols=range:z | b join FENCED_INSTANCE_ID
        join a instance=ia                         | a joined 2 range, leader a of a,b
                                                   | b joined 2 range, leader a
        """
    )


def test_a_restart_during_the_initial_delay_fences_the_first() -> None:
    Play().run(
        """
        join a instance=ia         |
        join a id=none instance=ia | a join FENCED_INSTANCE_ID
        wait 3000                  | a joined 1 range, leader a of a
        """
    )


@pytest.mark.parametrize("log_error", ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER"])
def test_when_the_new_id_is_not_written_the_old_one_is_valid(log_error: str) -> None:
    heard = {"NOT_ENOUGH_REPLICAS": "COORDINATOR_NOT_AVAILABLE"}.get(log_error, "NOT_COORDINATOR")
    play = static_pair()
    play.run(
        f"""
        hold                       |
        join a id=none instance=ia |
        beat a instance=ia         | a beat FENCED_INSTANCE_ID
        fail {log_error}           | a join {heard}
        beat a instance=ia         | a beat NONE
        state                      | Stable 1 b,a
        """
    )
    assert play.existing().leader_id == play.ids["a"][0]
    assert play.existing().members[play.ids["a"][0]].assignment == b"A"


def test_a_rebalance_that_begins_before_the_write_ends_takes_the_join_over() -> None:
    static_pair().run(
        """
        hold                       |
        join b id=none instance=ib |
        join a instance=ia         | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        commit                     |
        state                      | CompletingRebalance 2 a,b
        """
    )


def test_a_second_restart_before_the_write_ends_fences_the_first() -> None:
    play = static_pair()
    play.run(
        """
        hold                       |
        join b id=none instance=ib |
        join b id=none instance=ib | b join FENCED_INSTANCE_ID
        commit                     |
        commit                     | b joined 1 range, leader a
        """
    )


def test_when_no_restart_is_written_the_first_id_is_valid() -> None:
    static_pair().run(
        """
        hold                       |
        join a id=none instance=ia |
        join a id=none instance=ia | a join FENCED_INSTANCE_ID
        fail KAFKA_STORAGE_ERROR   |
        fail KAFKA_STORAGE_ERROR   | a join NOT_COORDINATOR
        beat a instance=ia         | a beat NONE
        join b instance=ib         | b joined 1 range, leader a
        """
    )


def test_the_session_of_a_new_id_begins_when_it_is_written() -> None:
    play = static_pair()
    play.run(
        """
        hold                       |
        join b id=none instance=ib |
        wait 9000                  |
        beat a instance=ia         | a beat NONE
        wait 9000                  |
        beat a instance=ia         | a beat NONE
        commit                     | b joined 1 range, leader a
        wait 9999                  |
        beat a instance=ia         | a beat NONE
        state                      | Stable 1 a,b
        wait 1                     |
        state                      | PreparingRebalance 1 a
        """
    )


def test_a_restart_takes_no_room_in_a_full_group() -> None:
    static_pair(GroupSettings(max_size=2)).run(
        """
        join b id=none instance=ib | b joined 1 range, leader a
        join c instance=ic         | c join GROUP_MAX_SIZE_REACHED
        """
    )


def test_sessions_of_static_members_end_like_others() -> None:
    static_pair().run(
        """
        wait 9000          |
        beat a instance=ia | a beat NONE
        wait 1000          |
        state              | PreparingRebalance 1 a
        join a instance=ia | a joined 2 range, leader a of a
        """
    )


def test_the_old_ids_timer_does_not_remove_the_new_one() -> None:
    static_pair().run(
        """
        wait 9000                  |
        beat a instance=ia         | a beat NONE
        join b id=none instance=ib | b joined 1 range, leader a
        wait 9000                  |
        state                      | Stable 1 a,b
        """
    )


def test_a_restart_of_one_that_has_not_synced_has_the_same_deadline() -> None:
    play = stable(None, "a")
    play.run(
        """
        join s instance=i               |
        join a                          | a joined 2 range, leader a of a,s; s joined 2 range, leader a
        sync a assign=a:1,s:2           | a synced '1'
        join s id=none instance=i       | s joined 2 range, leader a
        """
    )
    assert list(play.existing().unsynced) == [play.ids["s"][1]]
    play.run("sync s instance=i | s synced '2'")
    assert not play.existing().unsynced


def test_the_answer_names_the_new_id() -> None:
    play = static_pair()
    play.do_join("b", "id=none", "instance=ib")
    response = list(play.replies.values())[-1]
    assert isinstance(response, m.JoinGroupResponse)
    assert response.member_id == play.ids["b"][1] != play.ids["b"][0]
