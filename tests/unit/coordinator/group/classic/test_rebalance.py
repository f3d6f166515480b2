"""The join phase: initial delay, deadline, who is missing (coordinators.md 3.2 and 3.3)."""

from __future__ import annotations

import pytest

from coordinator.group.classic.events import GroupSettings
from coordinator.group.classic.rebalance import client_reason
from coordinator.group.classic.states import GroupState
from tests.unit.coordinator.group.classic.play import START_MS, Play, stable


def test_fifty_members_within_the_initial_delay_end_in_one_generation() -> None:
    play = Play()
    for index in range(50):
        play.do_join(f"m{index}")
        play.do_join(f"m{index}")
        play.do_wait("100")
    play.heard = []
    play.do_wait("4000")
    assert len(play.heard) == 50
    assert all(" joined 1 range, leader m0" in each for each in play.heard)


def test_the_initial_delay_is_extended_only_if_somebody_joined_meanwhile() -> None:
    Play().run(
        """
        join a v=3 |
        wait 2999  |
        join b v=3 |
        wait 1     |
        wait 2999  |
        wait 1     | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        """
    )


def test_the_initial_delay_never_exceeds_the_rebalance_timeout() -> None:
    play = Play()
    for index in range(40):
        play.do_join(f"m{index}", "v=3", "rebalance=10000")
        play.do_wait("500")
    assert play.existing().generation >= 1
    assert play.existing().state is not GroupState.EMPTY


def test_the_initial_delay_ends_at_the_rebalance_timeout_exactly() -> None:
    play = Play()
    play.do_join("a", "v=3", "rebalance=10000")
    for _ in range(99):
        play.do_wait("100")
        play.do_join(f"m{play.now_ms}", "v=3", "rebalance=10000")
    assert play.existing().generation == 0
    play.do_wait("100")
    assert play.now_ms == START_MS + 10_000
    assert play.existing().generation == 1


def test_a_rebalance_timeout_below_the_delay_bounds_the_delay() -> None:
    Play().run(
        """
        join a v=3 rebalance=1000 |
        wait 999                  |
        wait 1                    | a joined 1 range, leader a of a
        """
    )


def test_without_initial_delay_the_first_member_starts_at_once() -> None:
    Play(GroupSettings(initial_rebalance_delay_ms=0)).run(
        """
        join a                   | a join MEMBER_ID_REQUIRED
        join b                   | b join MEMBER_ID_REQUIRED
        join a                   | a joined 1 range, leader a of a
        join b                   |
        join a                   | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_later_rebalances_have_no_delay() -> None:
    stable(None, "a").run(
        """
        join b v=3 |
        join a     | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_a_member_that_crashed_is_gone_at_the_rebalance_timeout() -> None:
    stable(None, "a", "b", session="100000").run(
        """
        join a                   |
        wait 59999               |
        wait 1                   | a joined 2 range, leader a of a
        join b                   | b join UNKNOWN_MEMBER_ID
        """
    )


def test_the_longest_rebalance_timeout_of_the_members_counts() -> None:
    play = Play()
    play.run(
        """
        join a v=3 rebalance=20000 session=60000 |
        join b v=3 rebalance=30000 session=60000 |
        wait 6000 | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        sync b    |
        sync a    | a synced ''; b synced ''
        join a    rebalance=20000 session=60000 |
        wait 29999 |
        wait 1    | a joined 2 range, leader a of a
        """
    )


def test_a_leader_that_is_missing_gives_the_lead_to_one_that_joined() -> None:
    stable(None, "a", "b", "c", session="100000").run(
        """
        join c protocols=range:z |
        join b                   |
        wait 60000               | b joined 2 range, leader b of b,c; c joined 2 range, leader b
        """
    )


def test_ids_that_were_handed_out_hold_the_join_phase_open() -> None:
    stable(None, "a").run(
        """
        join b     | b join MEMBER_ID_REQUIRED
        join a     |
        wait 9999  |
        wait 1     | a joined 2 range, leader a of a
        """
    )


def test_the_join_phase_that_waits_for_an_id_ends_when_it_is_used() -> None:
    stable(None, "a").run(
        """
        join b | b join MEMBER_ID_REQUIRED
        join a |
        join b | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_static_members_alone_that_do_not_join_are_waited_for() -> None:
    play = Play()
    play.run(
        """
        join s instance=i session=200000 |
        join d v=3 session=200000        |
        wait 6000                        | s joined 1 range, leader s of s,d; d joined 1 range, leader s
        sync d                           |
        sync s                           | s synced ''; d synced ''
        leave d                          | d left NONE NONE
        wait 60000                       |
        state                            | PreparingRebalance 1 s
        wait 60000                       |
        state                            | PreparingRebalance 1 s
        join s instance=i session=200000 | s joined 2 range, leader s of s
        """
    )


def test_a_static_member_that_misses_the_join_phase_stays_with_its_old_subscription() -> None:
    play = Play()
    play.run(
        """
        join s instance=i session=300000 protocols=range:old |
        join d v=3 session=300000                            |
        wait 6000  | s joined 1 range, leader s of s,d; d joined 1 range, leader s
        sync d     |
        sync s     | s synced ''; d synced ''
        join d protocols=range:new session=300000 |
        wait 60000 | d joined 2 range, leader d of s,d
        sync d assign=s:1,d:2 | d synced '2'
        wait 120000 |
        state      | Stable 2 s,d
        """
    )
    kept = play.existing().members[play.ids["s"][0]]
    assert kept.metadata("range") == b"old"
    assert kept.assignment == b"1"


def test_the_last_member_that_leaves_raises_the_generation_and_records_an_empty_group() -> None:
    play = stable(None, "a")
    play.run(
        """
        leave a   | a left NONE NONE
        state     | Empty 2
        join b v=3 |
        wait 2999 |
        wait 1    | b joined 3 range, leader b of b
        """
    )
    value = play.log[-1].value
    assert value is not None
    assert (value.generation, value.protocol, value.leader, value.members) == (2, None, None, [])
    assert value.protocol_type == "consumer"
    assert value.current_state_timestamp == START_MS + 6000


def test_leaving_during_the_initial_delay_does_not_cut_it_short() -> None:
    Play().run(
        """
        join a v=3 |
        join b     | b join MEMBER_ID_REQUIRED
        join b     |
        leave b    | b join UNKNOWN_MEMBER_ID; b left NONE NONE
        wait 5999  |
        wait 1     | a joined 1 range, leader a of a
        """
    )


def test_the_initial_delay_ends_when_nobody_is_left() -> None:
    Play().run(
        """
        join b  | b join MEMBER_ID_REQUIRED
        join b  |
        leave b | b join UNKNOWN_MEMBER_ID; b left NONE NONE
        state   | Empty 1
        """
    )


def test_the_generation_rises_once_for_each_completed_rebalance() -> None:
    play = stable(None, "a", "b")
    play.run(
        """
        join a                   |
        join a                   | a join REBALANCE_IN_PROGRESS
        leave b                  | a joined 2 range, leader a of a; b left NONE NONE
        """
    )


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (None, "client reason: not provided"),
        ("restart", "client reason: restart"),
        ("x" * 300, "client reason: " + "x" * 255),
    ],
)
def test_reasons_of_clients_are_cut(reason: str | None, text: str) -> None:
    assert client_reason(reason) == text
