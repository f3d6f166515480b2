"""A group as a record of __consumer_offsets, and back (key type 2, GroupMetadataValue 0 to 4; 3 is written).

What a record has: type, generation, protocol, leader, since when, and of each member its timeouts, its
metadata for the chosen protocol alone, and its assignment. So a loaded member supports just that one
protocol until it joins again. A record is written when an assignment arrives, when a static member gets a
new id, and when a group becomes empty; what happens during a rebalance is not recorded, a coordinator that
takes over finds the last generation.
"""

from __future__ import annotations

from coordinator.group.classic.effects import GroupRecord
from coordinator.group.classic.events import GroupSettings
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import Member
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from runtime.entropy import Random


def group_record(
    group: ClassicGroup, assignments: dict[str, bytes] | None = None, since_ms: int | None = None
) -> GroupRecord:
    """The record of a group; `assignments` and `since_ms` stand for what will hold then."""
    return GroupRecord(
        m.GroupMetadataKey(group=group.group_id),
        m.GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=group.protocol_name,
            leader=group.leader_id,
            current_state_timestamp=group.state_since_ms if since_ms is None else since_ms,
            members=[
                m.GroupMetadataValue.MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.metadata(group.protocol_name),
                    assignment=member.assignment
                    if assignments is None
                    else assignments.get(member.member_id, b""),
                )
                for member in group.members.values()
            ],
        ),
    )


def tombstone(group_id: str) -> GroupRecord:
    """The record that removes a group."""
    return GroupRecord(m.GroupMetadataKey(group=group_id), None)


def load_group(
    group_id: str, value: m.GroupMetadataValue, settings: GroupSettings, random: Random
) -> ClassicGroup:
    """The group that a record describes: Stable with members, Empty without.

    Timers begin at the event Loaded. A record that names no leader was no Stable group's: the group has no
    leader, and rebalances then. Without a protocol nobody could say what its members support, so they are
    left out and have to join as new ones.
    """
    members = value.members if value.protocol is not None else []
    group = ClassicGroup(
        group_id,
        settings,
        random,
        state=GroupState.STABLE if members else GroupState.EMPTY,
        previous_state=GroupState.STABLE if members else GroupState.EMPTY,
        state_since_ms=value.current_state_timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
    )
    for stored in members:
        repeated = stored.member_id in group.members or stored.group_instance_id in group.static_ids
        if not repeated:  # which no coordinator writes
            group.add(_member(stored, value.protocol or ""))
    group.leader_id = value.leader if value.leader in group.members else None
    return group


def _member(stored: m.GroupMetadataValue.MemberMetadata, protocol: str) -> Member:
    return Member(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        stored.session_timeout if stored.rebalance_timeout < 0 else stored.rebalance_timeout,
        stored.session_timeout,
        ((protocol, stored.subscription),),
        stored.assignment,
    )
