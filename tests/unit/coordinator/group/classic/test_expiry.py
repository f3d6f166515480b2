"""Sessions that end (coordinators.md 3.2)."""

from __future__ import annotations

from coordinator.group.classic.effects import session_timer
from coordinator.group.classic.events import SessionExpired
from tests.unit.coordinator.group.classic.play import START_MS, Play, stable


def test_a_member_that_is_silent_for_its_session_is_removed() -> None:
    stable(None, "a", "b").run(
        """
        wait 9999 |
        beat a    | a beat NONE
        state     | Stable 1 a,b
        wait 1    |
        state     | PreparingRebalance 1 a
        beat b    | b beat UNKNOWN_MEMBER_ID
        beat a    | a beat REBALANCE_IN_PROGRESS
        """
    )


def test_heartbeats_joins_and_syncs_keep_a_session() -> None:
    play = stable(None, "a", "b")
    for _ in range(10):
        play.run(
            """
            wait 9000 |
            join b    | b joined 1 range, leader a
            beat a    | a beat NONE
            wait 9000 |
            sync b    | b synced 'B'
            sync a    | a synced 'A'
            """
        )


def test_the_session_of_a_member_that_waits_cannot_end() -> None:
    stable(None, "a", "b", session="30000").run(
        """
        join a session=6000 |
        wait 29000          |
        beat b              | b beat REBALANCE_IN_PROGRESS
        wait 29000          |
        beat b              | b beat REBALANCE_IN_PROGRESS
        join b              | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        wait 5999           |
        beat a              | a beat NONE
        """
    )


def test_the_session_begins_again_with_the_answer() -> None:
    stable(None, "a", "b", session="30000").run(
        """
        join a session=6000  |
        wait 20000           |
        join b session=30000 | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        sync b               |
        wait 5999            |
        state                | CompletingRebalance 2 a,b
        wait 1               | b sync REBALANCE_IN_PROGRESS
        state                | PreparingRebalance 2 b
        """
    )


def test_a_first_join_that_waits_longer_than_five_minutes_is_removed() -> None:
    play = stable(None, "a", session="1000000", rebalance="900000")
    play.run(
        """
        join b session=1000000 rebalance=900000 | b join MEMBER_ID_REQUIRED
        join b session=1000000 rebalance=900000 |
        wait 299999                             |
        wait 1                                  | b join UNKNOWN_MEMBER_ID
        join b                                  | b join UNKNOWN_MEMBER_ID
        """
    )


def test_an_id_that_is_not_used_is_forgotten_after_its_session_timeout() -> None:
    play = Play()
    play.run(
        """
        join a            | a join MEMBER_ID_REQUIRED
        join b session=20000 | b join MEMBER_ID_REQUIRED
        wait 9999         |
        join b            |
        wait 1            |
        join a            | a join UNKNOWN_MEMBER_ID
        """
    )
    assert play.now_ms == START_MS + 10_000


def test_members_that_all_fall_silent_leave_an_empty_group() -> None:
    play = stable(None, "a", "b")
    play.run(
        """
        wait 10000 |
        state      | Empty 2
        """
    )
    assert not play.timers


def test_a_clock_that_is_set_back_costs_one_session() -> None:
    play = stable(None, "a")  # its timer was set by the join, 3 s ago
    play.now_ms -= 900_000
    play.timers = {key: (at - 900_000, event) for key, (at, event) in play.timers.items()}
    play.run(
        """
        wait 7000  |
        state      | Stable 1 a
        wait 9999  |
        state      | Stable 1 a
        wait 1     |
        state      | Empty 2
        """
    )


def test_a_timer_that_is_out_of_date_changes_nothing() -> None:
    play = stable(None, "a")
    play.do_wait("9000")
    play.run("beat a | a beat NONE")
    play.do_wait("500")
    play.timers.pop(session_timer(play.ids["a"][0]))
    out = play.tell(SessionExpired(play.ids["a"][0]))
    (timer,) = out.timers
    assert (timer.key, timer.delay_ms) == (session_timer(play.ids["a"][0]), 9500)
    assert play.tell(SessionExpired("nobody")).timers == []
    play.run("state | Stable 1 a")
