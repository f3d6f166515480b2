"""Records of groups, and groups from records (coordinators.md 2.1 and 1.5)."""

from __future__ import annotations

import pytest

from coordinator.group.classic.events import GroupSettings
from coordinator.group.classic.snapshot import group_record, load_group, tombstone
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from tests.unit.coordinator.group.classic.play import CountingIds, stable


def value_of(**changes: object) -> m.GroupMetadataValue:
    """A value as Kafka writes it, with one member."""
    member = m.GroupMetadataValue.MemberMetadata(
        member_id="m1",
        group_instance_id="i",
        client_id="c",
        client_host="/h",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=b"sub",
        assignment=b"ass",
    )
    fields: dict[str, object] = {
        "protocol_type": "consumer",
        "generation": 7,
        "protocol": "range",
        "leader": "m1",
        "current_state_timestamp": 5,
        "members": [member],
    }
    return m.GroupMetadataValue(**(fields | changes))  # type: ignore[arg-type]


def test_a_member_that_is_recorded_twice_is_loaded_once() -> None:
    """No coordinator writes that; a client that may write to the topic can."""
    value = value_of()
    [member] = value.members
    other = value_of().members[0]
    other.member_id = "m2"  # with the same instance id
    group = load_group("g", value_of(members=[member, member, other]), GroupSettings(), CountingIds())
    assert list(group.members) == ["m1"]
    assert group.static_ids == {"i": "m1"}


def test_what_is_loaded_is_recorded_again() -> None:
    value = value_of()
    record = group_record(load_group("g", value, GroupSettings(), CountingIds()))
    assert record.key == m.GroupMetadataKey(group="g")
    assert record.value == value


def test_a_stable_group_equals_its_record() -> None:
    play = stable(None, "a", "b", protocols="range:x,rr:y")
    assert group_record(play.existing()) == play.log[-1]


def test_an_empty_group_equals_its_record() -> None:
    play = stable(None, "a")
    play.run("leave a | a left NONE NONE")
    assert group_record(play.existing()) == play.log[-1]
    value = play.log[-1].value
    assert value is not None
    loaded = load_group("g", value, GroupSettings(), CountingIds())
    assert loaded.state is GroupState.EMPTY
    assert loaded.state_since_ms == play.existing().state_since_ms
    assert group_record(loaded) == play.log[-1]


@pytest.mark.parametrize("version", range(5))
def test_every_version_is_read(version: int) -> None:
    encoded = value_of().encode(version)
    value, _ = m.GroupMetadataValue.decode(version, encoded)
    group = load_group("g", value, GroupSettings(), CountingIds())
    (member,) = group.members.values()
    assert group.state is GroupState.STABLE
    assert (group.generation, group.protocol_name, group.leader_id) == (7, "range", "m1")
    assert member.rebalance_timeout_ms == (60_000 if version >= 1 else 10_000)
    assert group.state_since_ms == (5 if version >= 2 else -1)
    assert member.instance_id == ("i" if version >= 3 else None)
    assert (member.metadata("range"), member.assignment) == (b"sub", b"ass")


def test_no_protocol_type_is_a_simple_group() -> None:
    group = load_group("g", value_of(protocol_type="", members=[]), GroupSettings(), CountingIds())
    assert group.protocol_type is None
    assert group.state is GroupState.EMPTY


@pytest.mark.parametrize("leader", ["gone", None])
def test_a_leader_that_is_no_member_is_none(leader: str | None) -> None:
    group = load_group("g", value_of(leader=leader), GroupSettings(), CountingIds())
    assert group.leader_id is None
    assert list(group.members) == ["m1"]


def test_members_without_a_protocol_have_to_join_as_new_ones() -> None:
    group = load_group("g", value_of(protocol=None), GroupSettings(), CountingIds())
    assert (group.state, group.generation, group.members) == (GroupState.EMPTY, 7, {})


def test_a_tombstone_has_no_value() -> None:
    record = tombstone("g")
    assert (record.key.group, record.value) == ("g", None)
