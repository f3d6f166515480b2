"""JoinGroup (coordinators.md 3.2 and 3.3)."""

from __future__ import annotations

import pytest

from coordinator.group.classic.events import GroupSettings
from protocol import messages as m
from tests.unit.coordinator.group.classic.play import Play, stable


@pytest.mark.parametrize("session", [5999, 1_800_001, 0, -1])
def test_a_session_timeout_out_of_bounds_leaves_no_group_behind(session: int) -> None:
    play = Play()
    play.run(f"join a session={session} | a join INVALID_SESSION_TIMEOUT")
    assert play.group is None


@pytest.mark.parametrize("session", [6000, 1_800_000])
def test_bounds_of_the_session_timeout_are_inclusive(session: int) -> None:
    Play().run(f"join a session={session} | a join MEMBER_ID_REQUIRED")


def test_a_session_timeout_out_of_bounds_is_refused_before_the_members_identity() -> None:
    stable(None, "a").run("join a session=5999 | a join INVALID_SESSION_TIMEOUT")


def test_a_member_id_does_not_create_a_group() -> None:
    play = Play()
    play.ids["a"] = ["made-up"]
    play.run("join a | a join UNKNOWN_MEMBER_ID")
    assert play.group is None


@pytest.mark.parametrize("version", range(4, 10))
def test_an_id_is_required_from_version_4(version: int) -> None:
    Play().run(
        f"""
        join a v={version} | a join MEMBER_ID_REQUIRED
        state              | Empty 0
        join a v={version} |
        wait 3000          | a joined 1 range, leader a of a
        """
    )


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_a_member_is_admitted_at_once(version: int) -> None:
    Play().run(
        f"""
        join a v={version} |
        wait 3000          | a joined 1 range, leader a of a
        """
    )


@pytest.mark.parametrize(("version", "protocol_type"), [(6, ""), (7, "consumer")])
def test_the_protocol_type_is_told_from_version_7(version: int, protocol_type: str) -> None:
    play = Play()
    play.run(
        f"""
        join a v={version} instance=i |
        wait 3000                     | a joined 1 range, leader a of a
        """
    )
    response = play.replies[1]
    assert isinstance(response, m.JoinGroupResponse)
    decoded, _ = m.JoinGroupResponse.decode(version, response.encode(version))
    assert (decoded.protocol_type or "") == protocol_type


def test_two_joins_without_id_get_two_ids_and_no_member() -> None:
    play = Play()
    play.run(
        """
        join a | a join MEMBER_ID_REQUIRED
        join b | b join MEMBER_ID_REQUIRED
        state  | Empty 0
        """
    )
    assert play.ids["a"] != play.ids["b"]
    assert play.ids["a"][0].startswith("a-"), "an id begins with the client id"


def test_protocols_of_another_type_or_without_a_common_name_are_refused() -> None:
    stable(None, "a", protocols="range:x,rr:y").run(
        """
        join b type=connect                   | b join INCONSISTENT_GROUP_PROTOCOL
        join b protocols=sticky:              | b join INCONSISTENT_GROUP_PROTOCOL
        join b protocols=                     | b join INCONSISTENT_GROUP_PROTOCOL
        beat a                                | a beat NONE
        join b protocols=sticky:,rr:          | b join MEMBER_ID_REQUIRED
        """
    )


@pytest.mark.parametrize("options", ["type= protocols=range:x", "type=consumer protocols="])
def test_a_first_member_needs_a_type_and_a_protocol(options: str) -> None:
    play = Play()
    play.run(f"join a {options} | a join INCONSISTENT_GROUP_PROTOCOL")
    assert play.existing().is_vacant


@pytest.mark.parametrize("protocol_type", ["consumer", "connect", "sr", "anything at all"])
def test_any_protocol_type_passes(protocol_type: str) -> None:
    kind = protocol_type.replace(" ", "-")
    Play().run(
        f"""
        join a type={kind} protocols=v0:            | a join MEMBER_ID_REQUIRED
        join a type={kind} protocols=v0:            |
        wait 3000                                   | a joined 1 v0, leader a of a
        sync a assign=a:x type={kind} protocol=v0   | a synced 'x'
        """
    )


def test_members_that_prefer_differently_meet_at_the_vote() -> None:
    Play().run(
        """
        join a v=3 protocols=range:1,rr:2 |
        join b v=3 protocols=rr:3,range:4 |
        join c v=3 protocols=rr:5,range:6 |
        wait 6000 | a joined 1 rr, leader a of a,b,c; b joined 1 rr, leader a; c joined 1 rr, leader a
        """
    )


def test_a_repeated_join_in_completing_rebalance_gets_the_same_generation() -> None:
    Play().run(
        """
        join a v=3               |
        join b v=3               |
        wait 6000                | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        join b                   | b joined 1 range, leader a
        join a                   | a joined 1 range, leader a of a,b
        state                    | CompletingRebalance 1 a,b
        join b protocols=range:z |
        state                    | PreparingRebalance 1 a,b
        """
    )


def test_in_stable_a_follower_with_nothing_new_gets_the_generation() -> None:
    stable(None, "a", "b").run(
        """
        join b                   | b joined 1 range, leader a
        state                    | Stable 1 a,b
        join b protocols=range:z |
        state                    | PreparingRebalance 1 a,b
        """
    )


def test_in_stable_the_order_of_protocols_counts_as_metadata() -> None:
    stable(None, "a", "b", protocols="range:x,rr:x").run(
        """
        join b protocols=rr:x,range:x |
        state                         | PreparingRebalance 1 a,b
        """
    )


def test_a_leader_that_joins_in_stable_always_starts_a_rebalance() -> None:
    stable(None, "a", "b").run(
        """
        join a | 
        beat b | b beat REBALANCE_IN_PROGRESS
        join b | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_two_rebalances_in_a_row_as_cooperative_assignors_need_them() -> None:
    stable(None, "a", "b").run(
        """
        join c                       | c join MEMBER_ID_REQUIRED
        join c                       |
        join a protocols=range:owned |
        join b protocols=range:owned | a joined 2 range, leader a of a,b,c
                                     | b joined 2 range, leader a
                                     | c joined 2 range, leader a
        sync c                       |
        sync b                       |
        sync a assign=a:1,b:2        | a synced '1'; b synced '2'; c synced ''
        join a protocols=range:less  |
        beat b                       | b beat REBALANCE_IN_PROGRESS
        join b protocols=range:less  |
        join c                       | a joined 3 range, leader a of a,b,c
                                     | b joined 3 range, leader a
                                     | c joined 3 range, leader a
        """
    )


def test_a_second_join_takes_the_place_of_the_first() -> None:
    stable(None, "a", "b").run(
        """
        join a                       |
        join a protocols=range:later | a join REBALANCE_IN_PROGRESS
        join b                       | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        """
    )


def test_a_full_group_turns_the_third_away_until_a_member_leaves() -> None:
    play = stable(GroupSettings(max_size=2), "a", "b")
    play.run(
        """
        join c   | c join GROUP_MAX_SIZE_REACHED
        join b   | b joined 1 range, leader a
        join a   |
        join b   | a joined 2 range, leader a of a,b; b joined 2 range, leader a
        leave a  | a left NONE NONE
        join c   | c join MEMBER_ID_REQUIRED
        join c   |
        join b   | b joined 3 range, leader b of b,c; c joined 3 range, leader b
        """
    )
    refused = next(each for each in play.replies.values() if getattr(each, "error_code", 0) == 81)
    assert isinstance(refused, m.JoinGroupResponse)
    assert refused.member_id == ""


def test_parked_members_fill_a_group_during_the_join_phase() -> None:
    Play(GroupSettings(max_size=2)).run(
        """
        join a v=3 |
        join b v=3 |
        join c v=3 | c join GROUP_MAX_SIZE_REACHED
        wait 6000  | a joined 1 range, leader a of a,b; b joined 1 range, leader a
        """
    )


def test_ids_handed_out_beyond_the_limit_are_turned_away_when_used() -> None:
    Play(GroupSettings(max_size=1)).run(
        """
        join a    | a join MEMBER_ID_REQUIRED
        join b    | b join MEMBER_ID_REQUIRED
        join a    |
        join b    | b join GROUP_MAX_SIZE_REACHED
        join b    | b join GROUP_MAX_SIZE_REACHED
        wait 3000 | a joined 1 range, leader a of a
        """
    )


def test_an_unknown_id_or_instance_is_unknown() -> None:
    play = stable(None, "a")
    play.ids["x"] = ["made-up"]
    play.run(
        """
        join x            | x join UNKNOWN_MEMBER_ID
        join a instance=i | a join UNKNOWN_MEMBER_ID
        """
    )


def test_a_pending_id_cannot_become_static() -> None:
    Play().run(
        """
        join a            | a join MEMBER_ID_REQUIRED
        join a instance=i | a join UNKNOWN_MEMBER_ID
        """
    )


def test_joining_a_dead_group() -> None:
    stable(None, "a").run(
        """
        unload |
        join a | a join COORDINATOR_NOT_AVAILABLE
        join b | b join COORDINATOR_NOT_AVAILABLE
        """
    )
