"""The small steps of a group's state."""

from __future__ import annotations

import pytest

from coordinator.group.classic.effects import Outcome, SetTimer, session_timer
from coordinator.group.classic.events import GroupSettings, SessionExpired
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import Member, Waiter
from coordinator.group.classic.states import GroupState
from protocol.errors import ErrorCode
from tests.unit.coordinator.group.classic.play import CountingIds


def group_of(*members: Member) -> ClassicGroup:
    group = ClassicGroup("g", GroupSettings(), CountingIds(), protocol_type="consumer")
    for member in members:
        group.add(member)
    group.state = GroupState.STABLE if members else GroupState.EMPTY
    return group


def member(name: str, *protocols: str, instance_id: str | None = None) -> Member:
    offered = tuple((each, b"") for each in protocols or ("range",))
    return Member(name, instance_id, name, "/host", 60_000, 10_000, offered)


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        ([("range", "rr"), ("rr", "range"), ("rr", "range")], "rr"),
        ([("range", "rr"), ("range",), ("rr", "range")], "range"),
        ([("only-one", "rr"), ("rr",)], "rr"),
        ([("range", "rr"), ("rr", "range")], "range"),
        ([("sticky",)], "sticky"),
    ],
)
def test_vote_among_the_names_that_all_support(offers: list[tuple[str, ...]], chosen: str) -> None:
    group = group_of(*(member(str(index), *names) for index, names in enumerate(offers)))
    assert group.choose_protocol() == chosen


@pytest.mark.parametrize(
    ("protocol_type", "names", "supported"),
    [
        ("consumer", ["range"], True),
        ("consumer", ["sticky", "range"], True),
        ("consumer", ["rr"], False),
        ("consumer", [], False),
        ("connect", ["range"], False),
        ("", ["range"], False),
    ],
)
def test_a_joining_member_needs_the_type_and_one_name_of_all(
    protocol_type: str, names: list[str], supported: bool
) -> None:
    group = group_of(member("a", "range", "rr"), member("b", "range"))
    assert group.supports(protocol_type, names) is supported


@pytest.mark.parametrize(
    ("protocol_type", "names", "supported"),
    [("sr", ["v0"], True), ("", ["v0"], False), ("connect", [], False)],
)
def test_an_empty_group_takes_any_type_and_names_but_not_none(
    protocol_type: str, names: list[str], supported: bool
) -> None:
    assert group_of().supports(protocol_type, names) is supported


@pytest.mark.parametrize(
    ("member_id", "instance_id", "error"),
    [
        ("a", None, ErrorCode.NONE),
        ("x", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("s", "i", ErrorCode.NONE),
        ("x", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("a", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("s", "other", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_fencing_is_tested_before_membership(
    member_id: str, instance_id: str | None, error: ErrorCode
) -> None:
    group = group_of(member("a"), member("s", instance_id="i"))
    assert group.check_member(member_id, instance_id) is error


def test_the_first_member_leads_and_the_next_takes_over() -> None:
    a, b = member("a"), member("b")
    group = group_of(a, b)
    assert group.leader_id == "a"
    group.remove(a)
    assert group.leader_id == "b"
    group.remove(b)
    assert group.leader_id is None
    assert group.support == {}


def test_a_leader_that_has_not_joined_loses_the_lead_to_the_first_that_has() -> None:
    a, b, c = member("a", instance_id="i"), member("b"), member("c")
    group = group_of(a, b, c)
    assert not group.elect_joined_leader()
    group.park_join(c, Waiter(1, 9))
    assert group.elect_joined_leader()
    assert group.leader_id == "c"
    group.park_join(b, Waiter(2, 9))
    assert group.elect_joined_leader()
    assert group.leader_id == "c", "a leader that joined keeps the lead"


def test_replacing_keeps_lead_instance_and_pending_sync() -> None:
    old, new = member("old", instance_id="i"), member("new", instance_id="i")
    group = group_of(old, member("b"))
    group.unsynced["old"] = None
    group.replace(old, new)
    assert group.leader_id == "new"
    assert group.static_ids == {"i": "new"}
    assert list(group.unsynced) == ["new"]
    assert group.support == {"range": 2}


def test_an_update_counts_the_new_protocols_only() -> None:
    a = member("a", "range", "rr")
    group = group_of(a, member("b", "range"))
    group.update(a, (("sticky", b"1"), ("range", b"2")), 1, 2)
    assert group.support == {"sticky": 1, "range": 2}
    assert (a.rebalance_timeout_ms, a.session_timeout_ms) == (1, 2)


def test_a_protocol_named_twice_counts_once() -> None:
    group = group_of(member("a", "range", "range"), member("b", "rr"))
    assert group.support == {"range": 1, "rr": 1}


def test_everybody_joined_waits_for_ids_that_were_handed_out() -> None:
    a = member("a")
    group = group_of(a)
    group.park_join(a, Waiter(1, 9))
    assert group.everybody_joined
    group.pending_ids["p"] = None
    assert not group.everybody_joined


def test_a_session_sets_a_timer_only_where_none_fires_in_time() -> None:
    a = member("a")
    group = group_of(a)
    first, later, sooner = Outcome(), Outcome(), Outcome()
    group.renew_session(a, 1000, first)
    group.renew_session(a, 4000, later)
    a.session_timeout_ms = 6000
    group.renew_session(a, 4500, sooner)
    assert first.timers == [SetTimer(session_timer("a"), 10_000, SessionExpired("a"))]
    assert later.timers == []
    assert sooner.timers == [SetTimer(session_timer("a"), 6000, SessionExpired("a"))]
    assert a.session_deadline_ms == 10_500


def test_a_member_id_begins_with_the_instance_else_the_client() -> None:
    group = group_of()
    assert group.new_member_id("client", None) == "client-00000000-0000-0000-0000-000000000001"
    assert group.new_member_id("client", "i") == "i-00000000-0000-0000-0000-000000000002"


def test_a_group_is_vacant_until_anything_depends_on_it() -> None:
    group = group_of()
    assert group.is_vacant
    group.pending_ids["p"] = None
    assert not group.is_vacant
