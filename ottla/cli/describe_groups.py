"""`ottla consumer-groups --describe`: offsets with their lag, members, or state of groups.

Lag is the end of the log less the committed offset; "-" where either is not there. Partitions stand with the
member that owns them, members with most partitions first; partitions without an owner come last.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from ottla.cli.group_errors import Failed, print_error
from ottla.cli.java_errors import named, nested
from ottla.cli.tables import MISSING, Column, print_table, table
from ottla.client import ClientError
from ottla.groups.admin import Committed, GroupAdmin, Place
from ottla.groups.descriptions import (
    DEAD,
    GroupDescription,
    MemberDescription,
    NotAConsumerGroup,
    describe_consumer_groups,
)
from ottla.groups.log_offsets import LATEST, NO_LEADER, list_offsets, partition_leaders

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
STEADY = ("Stable", "Empty", DEAD)

Row = tuple[object, ...]


def describe(admin: GroupAdmin, group_ids: Sequence[str], view: str, verbose: bool) -> None:
    """Prints `view` (offsets, members or state) of each group."""
    groups = descriptions(admin, group_ids)
    rows = {}
    if view == "offsets":
        try:
            rows = {group.group_id: offset_rows(admin, group) for group in groups}
        except ClientError as error:
            raise Failed(nested(error)) from error
    for group in groups:
        if view == "offsets":
            print_offsets(group, rows[group.group_id], verbose)
        elif view == "members":
            print_members(group, verbose)
        else:
            print_state(group, verbose)


def descriptions(admin: GroupAdmin, group_ids: Sequence[str]) -> list[GroupDescription]:
    """The groups in order; one that can't be described is the end."""
    found = []
    for outcome in describe_consumer_groups(admin, group_ids).values():
        if isinstance(outcome, NotAConsumerGroup):
            raise Failed(f"java.lang.IllegalArgumentException: {outcome}")
        if isinstance(outcome, ClientError):
            raise Failed(named(outcome))
        found.append(outcome)
    return sorted(found, key=lambda group: group.group_id)


def has_rows(group: GroupDescription, count: int) -> bool:
    """Says what is to say of a group's state; whether there is something to print below."""
    if group.state == DEAD:
        print_error(f"Consumer group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        click.echo(f"\nConsumer group '{group.group_id}' has no active members.", err=True)
    elif group.state in REBALANCING:
        click.echo(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", err=True)
    elif group.state not in STEADY:
        raise Failed(f"Expected a valid consumer group state, but found '{group.state}'.")
    return group.state != DEAD and count > 0


def offset_rows(admin: GroupAdmin, group: GroupDescription) -> list[Row]:
    """The rows of all partitions that the group has offsets for or owns."""
    committed = admin.committed(group.group_id)
    owners = sorted(
        (member for member in group.members if member.assignment), key=lambda member: -len(member.assignment)
    )
    owned = {place for member in owners for place in member.assignment}
    unowned = [place for place in committed if place not in owned]
    ends = log_ends(admin, [*owned, *unowned])
    rows = []
    for member in owners:
        owner = (member.member_id, member.host, member.client_id)
        rows += [
            offset_row(group.group_id, place, committed, ends, owner) for place in sorted(member.assignment)
        ]
    for place in sorted(unowned):
        rows.append(offset_row(group.group_id, place, committed, ends, (None, None, None)))
    return rows


def offset_row(
    group_id: str, place: Place, committed: dict[Place, Committed], ends: dict[Place, int], owner: Row
) -> Row:
    """One partition, with the leader's epoch, which only --verbose shows, as its fourth cell."""
    position = committed.get(place)
    end = ends.get(place)
    offset = position and position.offset
    epoch = position.leader_epoch if position and position.leader_epoch >= 0 else None
    lag = end - position.offset if position and end is not None else None
    return (group_id, *place, epoch, offset, end, lag, *owner)


def log_ends(admin: GroupAdmin, places: Sequence[Place]) -> dict[Place, int]:
    """The ends of the partitions that have a leader."""
    leaders = partition_leaders(admin.client, (topic for topic, _ in places))
    led = [place for place in places if leaders.get(place) != NO_LEADER]
    return list_offsets(admin.client, led, LATEST, admin.coordinators.timeout_s)


def print_offsets(group: GroupDescription, rows: Sequence[Row], verbose: bool) -> None:
    """--offsets."""
    if not has_rows(group, len(rows)):
        return
    columns = [
        Column("GROUP", 15, grows=True),
        Column("TOPIC", 15, grows=True),
        Column("PARTITION", 10),
        Column("LEADER-EPOCH", 15),
        Column("CURRENT-OFFSET", 15),
        Column("LOG-END-OFFSET", 15),
        Column("LAG", 15),
        Column("CONSUMER-ID", 15, grows=True),
        Column("HOST", 15, grows=True),
        Column("CLIENT-ID"),
    ]
    if not verbose:
        del columns[3]
        rows = [(*row[:3], *row[4:]) for row in rows]
    print_table(table(columns, rows))


def print_members(group: GroupDescription, verbose: bool) -> None:
    """--members; what kind of protocol a member speaks is shown where the group has both."""
    has_rows(group, len(group.members))
    members = group.members
    columns = [
        Column("GROUP", 15, grows=True),
        Column("CONSUMER-ID", 15, grows=True),
        Column("GROUP-INSTANCE-ID", 17, grows=True),
        Column("HOST", 15, grows=True),
        Column("CLIENT-ID", 15, grows=True),
        Column("#PARTITIONS", 15),
    ]
    if verbose:
        columns += [
            Column("CURRENT-EPOCH", 15),
            Column("CURRENT-ASSIGNMENT", 20, grows=True),
            Column("TARGET-EPOCH", 15),
            Column("TARGET-ASSIGNMENT", 20, grows=True),
        ]
        if {member.upgraded for member in members} >= {True, False}:
            columns.append(Column("UPGRADED"))
    rows = [member_row(group, member)[: len(columns)] for member in members]
    if not any(member.instance_id for member in members):
        del columns[2]
        rows = [(*row[:2], *row[3:]) for row in rows]
    lines = table(columns, rows)
    print_table(lines if verbose else (line + " " for line in lines))


def member_row(group: GroupDescription, member: MemberDescription) -> Row:
    """All cells of a member."""
    upgraded = None if member.upgraded is None else str(member.upgraded).lower()
    return (
        group.group_id,
        member.member_id,
        member.instance_id or "",
        member.host,
        member.client_id,
        len(member.assignment),
        member.epoch,
        places_text(member.assignment),
        group.target_epoch,
        places_text(member.target or ()),
        upgraded,
    )


def places_text(places: Sequence[Place]) -> str:
    """`a:0,1;b:2`."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(places):
        topics.setdefault(topic, []).append(partition)
    parts = [f"{topic}:{','.join(map(str, partitions))}" for topic, partitions in topics.items()]
    return ";".join(sorted(parts)) or MISSING


def print_state(group: GroupDescription, verbose: bool) -> None:
    """--state."""
    if not has_rows(group, 1):
        return
    node, host, port = group.coordinator
    columns = [
        Column("GROUP", 15, grows=True),
        Column("COORDINATOR (ID)", 25, grows=True),
        Column("ASSIGNMENT-STRATEGY", 20),
        Column("STATE", 20),
        Column("GROUP-EPOCH", 15),
        Column("TARGET-ASSIGNMENT-EPOCH", 25),
        Column("#MEMBERS"),
    ]
    row: Row = (
        group.group_id,
        f"{host}:{port}  ({node})",
        group.assignor or MISSING,
        group.state,
        group.epoch,
        group.target_epoch,
        len(group.members),
    )
    if not verbose:
        del columns[4:6]
        row = (*row[:4], *row[6:])
    print_table(table(columns, [row]))
