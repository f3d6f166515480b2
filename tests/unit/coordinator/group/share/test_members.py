"""Records of members (10) and of their current assignments (14)."""

from __future__ import annotations

from coordinator.group.share.members import (
    ShareCurrent,
    ShareMember,
    current_record,
    member_record,
    read_current,
    read_member,
)

T = bytes(range(16))


def test_members_come_back_as_they_were() -> None:
    for member in (
        ShareMember("a", None, "client", "/host", frozenset({"u", "t"})),
        ShareMember("a", "rack", "", "", frozenset()),
    ):
        record = member_record("g", member)
        assert record.key == b"\x00\x0a\x00\x01g\x00\x01a"
        assert record.value is not None
        assert read_member("a", record.value) == member
        assert read_member("a", b"\x00\x01" + record.value[2:]) is None


def test_current_assignments_come_back_as_they_were() -> None:
    current = ShareCurrent(5, 4, {T: frozenset({0, 2})})
    record = current_record("g", "a", current)
    assert record.key == b"\x00\x0e\x00\x01g\x00\x01a"
    assert record.value is not None
    assert read_current(record.value) == current
    assert read_current(b"\x00\x01" + record.value[2:]) is None
