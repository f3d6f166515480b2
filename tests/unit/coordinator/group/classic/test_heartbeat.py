"""Heartbeat (coordinators.md 3.1 and 3.5)."""

from __future__ import annotations

import pytest

from tests.unit.coordinator.group.classic.play import LATEST, Play, stable


def test_heartbeats_without_a_group_or_in_an_empty_one() -> None:
    Play().run("beat a gen=0 | a beat UNKNOWN_MEMBER_ID")
    stable(None, "a").run(
        """
        leave a      | a left NONE NONE
        beat a gen=1 | a beat UNKNOWN_MEMBER_ID
        beat a gen=2 | a beat UNKNOWN_MEMBER_ID
        """
    )


def test_heartbeats_in_a_dead_group() -> None:
    stable(None, "a").run(
        """
        unload |
        beat a | a beat COORDINATOR_NOT_AVAILABLE
        """
    )


@pytest.mark.parametrize("version", range(LATEST["beat"] + 1))
def test_checks_in_their_order(version: int) -> None:
    play = Play()
    play.ids["x"] = ["made-up"]
    play.run(
        f"""
        join s instance=i               |
        wait 3000                       | s joined 1 range, leader s of s
        sync s                          | s synced ''
        beat s v={version}              | s beat NONE
        beat s instance=i v={version}   | s beat NONE
        beat x instance=i gen=0         | x beat FENCED_INSTANCE_ID
        beat x instance=j gen=0         | x beat UNKNOWN_MEMBER_ID
        beat x gen=0 v={version}        | x beat UNKNOWN_MEMBER_ID
        beat s gen=0 v={version}        | s beat ILLEGAL_GENERATION
        beat s gen=2 v={version}        | s beat ILLEGAL_GENERATION
        """
    )


def test_an_id_that_was_handed_out_cannot_heartbeat() -> None:
    stable(None, "a").run(
        """
        join b | b join MEMBER_ID_REQUIRED
        beat b | b beat UNKNOWN_MEMBER_ID
        """
    )


def test_completing_rebalance_takes_heartbeats() -> None:
    Play().run(
        """
        join a v=3 |
        wait 3000  | a joined 1 range, leader a of a
        beat a     | a beat NONE
        """
    )


def test_in_preparing_rebalance_a_heartbeat_tells_so_and_extends_the_session() -> None:
    stable(None, "a", "b").run(
        """
        join b protocols=range:z |
        wait 9999                |
        beat a                   | a beat REBALANCE_IN_PROGRESS
        wait 9999                |
        beat a                   | a beat REBALANCE_IN_PROGRESS
        wait 10000               | b joined 2 range, leader b of b
        beat a                   | a beat UNKNOWN_MEMBER_ID
        """
    )


def test_heartbeats_set_no_timer() -> None:
    play = stable(None, "a")
    before = dict(play.timers)
    play.do_wait("3000")
    play.run("beat a | a beat NONE")
    assert play.timers == before


def test_a_heartbeat_does_not_extend_the_limit_of_a_first_join() -> None:
    play = Play()
    play.run(
        """
        join a v=3 rebalance=900000 |
        wait 900                    |
        """
    )
    member_id = next(iter(play.existing().members))
    deadline = play.existing().members[member_id].session_deadline_ms
    play.ids["a"] = [member_id]
    play.run("beat a | a beat REBALANCE_IN_PROGRESS")
    assert play.existing().members[member_id].session_deadline_ms == deadline
