"""LeaveGroup (coordinators.md 3.5)."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.classic.play import Play, stable


def test_a_batch_has_an_error_for_each_and_starts_one_rebalance() -> None:
    play = stable(None, "a", "b", "c")
    play.ids["x"] = ["made-up"]
    play.run(
        """
        join s instance=i v=9 |
        join a                |
        join b                |
        join c                | a joined 2 range, leader a of a,b,c,s
                              | b joined 2 range, leader a
                              | c joined 2 range, leader a
                              | s joined 2 range, leader a
        sync a                | a synced ''
        leave b x c@i a       | b left NONE NONE UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID NONE
        state                 | PreparingRebalance 2 c,s
        """
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_version_3_the_one_members_error_is_on_top(version: int) -> None:
    play = stable(None, "a", "b")
    play.ids["x"] = ["made-up"]
    play.run(
        f"""
        leave x v={version} | x left UNKNOWN_MEMBER_ID
        leave b v={version} | b left NONE
        beat a              | a beat REBALANCE_IN_PROGRESS
        """
    )


def test_leaving_a_group_that_does_not_exist() -> None:
    play = Play()
    play.ids["a"] = ["made-up"]
    play.run(
        """
        leave a     | a left NONE UNKNOWN_MEMBER_ID
        leave a v=1 | a left UNKNOWN_MEMBER_ID
        """
    )
    assert play.group is None


def test_an_administrator_removes_a_static_member_by_its_instance() -> None:
    play = stable(None, "a")
    play.run(
        """
        join s instance=i |
        join a            | a joined 2 range, leader a of a,s; s joined 2 range, leader a
        leave @j          | j left NONE UNKNOWN_MEMBER_ID
        leave @i          | i left NONE NONE
        state             | PreparingRebalance 2 a
        """
    )


def test_an_empty_identity_is_unknown() -> None:
    stable(None, "a").run("leave none | none left NONE UNKNOWN_MEMBER_ID")


def test_an_id_that_was_handed_out_may_leave_and_end_the_join_phase() -> None:
    play = stable(None, "a")
    play.run(
        """
        join b  | b join MEMBER_ID_REQUIRED
        join a  |
        leave b | a joined 2 range, leader a of a; b left NONE NONE
        join b  | b join UNKNOWN_MEMBER_ID
        """
    )
    assert not [key for key in play.timers if key.member_id == play.ids["b"][0]]


def test_an_id_that_was_handed_out_leaves_an_empty_group() -> None:
    play = Play()
    play.run(
        """
        join b  | b join MEMBER_ID_REQUIRED
        leave b | b left NONE NONE
        state   | Empty 0
        """
    )
    assert play.existing().is_vacant


def test_a_leaving_member_with_a_parked_join_hears_that_it_is_unknown() -> None:
    stable(None, "a", "b").run(
        """
        join a  |
        leave a | a join UNKNOWN_MEMBER_ID; a left NONE NONE
        join b  | b joined 2 range, leader b of b
        """
    )


def test_the_join_phase_ends_when_the_missing_one_leaves() -> None:
    stable(None, "a", "b").run(
        """
        join a  |
        leave b | a joined 2 range, leader a of a; b left NONE NONE
        """
    )


def test_the_last_ones_answer_waits_for_the_empty_group() -> None:
    stable(None, "a").run(
        """
        hold    |
        leave a |
        state   | Empty 2
        commit  | a left NONE NONE
        """
    )


@pytest.mark.parametrize("version", [1, 5])
def test_when_the_empty_group_is_not_written_the_answer_says_so(version: int) -> None:
    stable(None, "a").run(
        f"""
        hold                     |
        leave a v={version}      |
        fail NOT_ENOUGH_REPLICAS | a left COORDINATOR_NOT_AVAILABLE
        state                    | Empty 2
        """
    )


def test_leaving_a_dead_group() -> None:
    stable(None, "a").run(
        """
        unload  |
        leave a | a left COORDINATOR_NOT_AVAILABLE
        """
    )


def test_unloading_answers_one_that_waits_for_the_empty_group() -> None:
    stable(None, "a").run(
        """
        hold    |
        leave a |
        unload  | a left NOT_COORDINATOR
        """
    )
