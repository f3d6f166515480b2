"""One member: its vote, its metadata, and when its session may end."""

from __future__ import annotations

import pytest

from coordinator.group.classic.member import Member, Waiter


def member(*protocols: tuple[str, bytes], instance_id: str | None = None) -> Member:
    return Member("m", instance_id, "client", "/host", 60_000, 10_000, protocols)


def test_a_member_votes_for_its_first_candidate() -> None:
    assert member(("range", b""), ("rr", b"")).vote({"rr": 0, "range": 0}) == "range"
    assert member(("range", b""), ("rr", b"")).vote({"rr": 0}) == "rr"
    assert member(("range", b"")).vote({"rr": 0}) is None


def test_metadata_is_that_of_the_named_protocol() -> None:
    two = member(("range", b"1"), ("rr", b"2"))
    assert two.metadata("rr") == b"2"
    assert two.metadata("sticky") == b""
    assert two.metadata(None) == b""


@pytest.mark.parametrize(
    ("is_new", "joining", "syncing", "may_expire"),
    [
        (False, False, False, True),
        (False, True, False, False),
        (False, False, True, False),
        (True, True, False, True),
    ],
)
def test_a_session_ends_unless_a_request_is_parked_but_a_first_join_has_a_limit(
    is_new: bool, joining: bool, syncing: bool, may_expire: bool
) -> None:
    tested = member()
    tested.is_new = is_new
    tested.joining = Waiter(1, 9) if joining else None
    tested.syncing = Waiter(2, 5) if syncing else None
    assert tested.may_expire is may_expire


def test_an_instance_id_makes_a_member_static() -> None:
    assert member(instance_id="i").is_static
    assert not member().is_static
