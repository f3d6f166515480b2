"""Who may commit (coordinators.md 3.6; known-faults: 22, 25, 27, 82)."""

from __future__ import annotations

import pytest

from coordinator.group.classic.commit import check_commit, check_commit_without_group
from coordinator.group.classic.effects import Outcome
from tests.unit.coordinator.group.classic.play import Play, stable


def commit(
    play: Play,
    name: str,
    generation: int,
    instance_id: str | None = None,
    transactional: bool = False,
) -> str:
    error = check_commit(
        play.existing(), play.member_id(name), instance_id, generation, transactional=transactional
    )
    return error.name


@pytest.mark.parametrize(
    ("generation", "version", "transactional", "error"),
    [
        (-1, 2, False, "NONE"),
        (-1, 9, False, "NONE"),
        (-1, 3, True, "NONE"),
        (0, 8, False, "ILLEGAL_GENERATION"),
        (5, 9, False, "GROUP_ID_NOT_FOUND"),
        (5, 10, False, "GROUP_ID_NOT_FOUND"),
        (5, 9, True, "ILLEGAL_GENERATION"),
    ],
)
def test_commits_to_a_group_that_does_not_exist(
    generation: int, version: int, transactional: bool, error: str
) -> None:
    assert check_commit_without_group(generation, version, transactional=transactional).name == error


@pytest.mark.parametrize("transactional", [False, True])
def test_commits_to_an_empty_group(transactional: bool) -> None:
    play = stable(None, "a")
    play.run("leave a | a left NONE NONE")
    assert commit(play, "none", -1, transactional=transactional) == "NONE"
    assert commit(play, "a", -1, "instance", transactional) == "NONE", "ids are ignored"
    assert commit(play, "a", 2, transactional=transactional) == "UNKNOWN_MEMBER_ID"
    assert commit(play, "none", 2, transactional=transactional) == "UNKNOWN_MEMBER_ID"


def test_commits_to_a_stable_group() -> None:
    play = stable(None, "a")
    play.run(
        """
        join s instance=i |
        join a            | a joined 2 range, leader a of a,s; s joined 2 range, leader a
        sync s            |
        sync a            | a synced ''; s synced ''
        """
    )
    play.ids["x"] = ["made-up"]
    assert commit(play, "a", 2) == "NONE"
    assert commit(play, "s", 2, "i") == "NONE"
    assert commit(play, "a", 1) == "ILLEGAL_GENERATION"
    assert commit(play, "a", -1) == "ILLEGAL_GENERATION"
    assert commit(play, "x", 2) == "UNKNOWN_MEMBER_ID"
    assert commit(play, "x", 1) == "UNKNOWN_MEMBER_ID", "membership is tested before the generation"
    assert commit(play, "x", 2, "i") == "FENCED_INSTANCE_ID"
    assert commit(play, "none", -1) == "UNKNOWN_MEMBER_ID"
    assert commit(play, "none", -1, "i") == "FENCED_INSTANCE_ID"


def test_a_transactional_commit_without_identity_passes_in_an_active_group() -> None:
    play = stable(None, "a")
    play.ids["x"] = ["made-up"]
    assert commit(play, "none", -1, transactional=True) == "NONE"
    assert commit(play, "a", 0, transactional=True) == "ILLEGAL_GENERATION"
    assert commit(play, "x", 1, transactional=True) == "UNKNOWN_MEMBER_ID"


def test_commits_during_a_rebalance() -> None:
    play = stable(None, "a")
    play.run("join b v=3 |")
    assert commit(play, "a", 1) == "NONE", "the join phase takes commits of the running generation"
    play.run("join a | a joined 2 range, leader a of a,b; b joined 2 range, leader a")
    assert commit(play, "a", 1) == "ILLEGAL_GENERATION"
    assert commit(play, "a", 2) == "REBALANCE_IN_PROGRESS"
    assert commit(play, "a", 2, transactional=True) == "NONE"
    play.run("sync a | a synced ''")
    assert commit(play, "a", 2) == "NONE"


def test_commits_to_a_dead_group() -> None:
    play = stable(None, "a")
    play.run("unload |")
    assert commit(play, "a", 1) == "COORDINATOR_NOT_AVAILABLE"


def test_a_commit_keeps_the_session() -> None:
    play = stable(None, "a")
    play.do_wait("9000")
    out = Outcome()
    group = play.existing()
    member = group.members[play.ids["a"][0]]
    assert group.extend_session(member, play.now_ms), "its timer will look again"
    play.perform(out)
    play.run(
        """
        wait 9999 |
        state     | Stable 1 a
        wait 1    |
        state     | Empty 2
        """
    )
