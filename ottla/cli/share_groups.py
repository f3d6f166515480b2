"""`ottla share-groups`: list, describe, delete share groups and change their offsets, as Kafka's
ShareGroupCommand does.

Like there, a failure after the options were understood is told on standard output and ends with exit code
0; what is wrong with the options, and a reset of a group in use, goes to standard error with exit code 1.
Rows that Kafka prints in the order of a hash table come in the order of their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import click

from ottla.cli.consumer_groups import chosen, csv_line
from ottla.cli.describe_groups import places_text
from ottla.cli.group_errors import Failed, Refused, print_error
from ottla.cli.group_options import GroupArguments, refuse_lonely
from ottla.cli.java_errors import class_name, named, of_code
from ottla.cli.offset_strategies import Offsets, Strategies, check_places, topic_places
from ottla.cli.options import ToolFailed, connect, read_properties
from ottla.cli.reset_offsets import from_file
from ottla.cli.reset_times import parse_datetime
from ottla.cli.share_group_options import (
    check_arguments,
    share_group_options,
    the_action,
)
from ottla.cli.tables import Column, print_table, table
from ottla.client import ClientError
from ottla.groups.share_admin import PROTOCOL_TYPES, TYPES, ShareGroup, ShareGroupAdmin
from protocol.errors import ErrorCode

STATES = ("Empty", "Stable", "Dead")
IDLE = ("Empty", "Dead")
GROUP = Column("GROUP", 15, grows=True)
TOPIC = Column("TOPIC", 15, grows=True)
GROUP_LEVEL = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)


@click.command(name="share-groups", short_help="List, describe, delete share groups, change their offsets.")
@share_group_options
@click.pass_context
def command(
    ctx: click.Context, /, bootstrap_server: str, command_config: Path | None, **options: object
) -> None:
    """List, describe, delete share groups and change their offsets."""
    arguments = GroupArguments(**options)  # type: ignore[arg-type]
    try:
        refuse_lonely(arguments)
        check_arguments(arguments)
        action = the_action(arguments)
        with connect(bootstrap_server, read_properties(command_config)) as client:
            run(action, ShareGroupAdmin(client, arguments.timeout / 1000), arguments)
    except Refused as error:
        raise ToolFailed(str(error)) from error


def run(action: str, admin: ShareGroupAdmin, arguments: GroupArguments) -> None:
    """Does what was asked; a failure is told and is the end."""
    act: Callable[[ShareGroupAdmin, GroupArguments], None] = {
        "list": list_groups,
        "describe": describe_groups,
        "delete": delete_groups,
        "reset-offsets": reset_offsets,
        "delete-offsets": delete_offsets,
    }[action]
    try:
        act(admin, arguments)
    except Failed as error:
        print_error(f"Executing share group command failed due to {error}")
    except ClientError as error:
        print_error(f"Executing share group command failed due to {named(error)}")


def list_groups(admin: ShareGroupAdmin, arguments: GroupArguments) -> None:
    """--list, with what --state adds and chooses."""
    states = chosen(arguments.state, STATES, "state")
    groups = admin.list_groups(PROTOCOL_TYPES, states, TYPES)
    if arguments.state is None:
        for group in groups:
            click.echo(group.group_id)
        return
    rows = [(group.group_id, group.state) for group in groups]
    click.echo("\n".join(table([GROUP, Column("STATE")], rows)))


def all_ids(admin: ShareGroupAdmin) -> list[str]:
    """Every share group."""
    return [group.group_id for group in admin.list_groups(PROTOCOL_TYPES, types=TYPES)]


def describe_groups(admin: ShareGroupAdmin, arguments: GroupArguments) -> None:
    """--describe."""
    ids = all_ids(admin) if arguments.all_groups else list(dict.fromkeys(arguments.group))
    groups = admin.describe(ids)
    for group in groups.values():
        if arguments.members:
            print_members(group, arguments.verbose)
        elif arguments.state is not None:
            print_state(group, arguments.verbose)
        else:
            print_offsets(admin, group, arguments.verbose)


def has_rows(group: ShareGroup, count: int) -> bool:
    """Says what is to say of a group's state; whether there is something to print below."""
    if group.state == "Dead":
        print_error(f"Share group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        click.echo(f"\nShare group '{group.group_id}' has no active members.", err=True)
    return group.state != "Dead" and count > 0


def print_offsets(admin: ShareGroupAdmin, group: ShareGroup, verbose: bool) -> None:
    """--offsets."""
    found = admin.offsets(group.group_id)
    if not found:
        click.echo(f"\nShare group '{group.group_id}' has no offset information.")
        return
    columns = [
        GROUP,
        TOPIC,
        Column("PARTITION", 10),
        Column("LEADER-EPOCH", 13),
        Column("START-OFFSET", 13),
        Column("LAG"),
    ]
    rows: list[tuple[object, ...]] = [
        (group.group_id, *place, at.leader_epoch, at.start_offset, at.lag)
        if at is not None
        else (group.group_id, *place, None, None, None)
        for place, at in found.items()
    ]
    if not verbose:
        del columns[3]
        rows = [(*row[:3], *row[4:]) for row in rows]
    print_table(table(columns, rows))


def print_members(group: ShareGroup, verbose: bool) -> None:
    """--members."""
    if not has_rows(group, len(group.members)):
        return
    columns = [
        GROUP,
        Column("CONSUMER-ID", 15, grows=True),
        Column("HOST", 15, grows=True),
        Column("CLIENT-ID", 15, grows=True),
        Column("#PARTITIONS", 12),
        Column("MEMBER-EPOCH", 13),
        Column("ASSIGNMENT"),
    ]
    rows: list[tuple[object, ...]] = [
        (
            group.group_id,
            member.member_id,
            member.host,
            member.client_id,
            len(member.assignment),
            member.epoch,
            places_text(member.assignment),
        )
        for member in group.members
    ]
    if not verbose:
        del columns[5]
        rows = [(*row[:5], row[6]) for row in rows]
    print_table(table(columns, rows))


def print_state(group: ShareGroup, verbose: bool) -> None:
    """--state."""
    if not has_rows(group, 1):
        return
    node, host, port = group.coordinator
    columns = [
        GROUP,
        Column("COORDINATOR (ID)", 25, grows=True),
        Column("STATE", 15),
        Column("GROUP-EPOCH", 12),
        Column("ASSIGNMENT-EPOCH", 17),
        Column("#MEMBERS"),
    ]
    row: tuple[object, ...] = (
        group.group_id,
        f"{host}:{port}  ({node})",
        group.state,
        group.epoch,
        group.assignment_epoch,
        len(group.members),
    )
    if not verbose:
        del columns[3:5]
        row = (*row[:3], row[5])
    print_table(table(columns, [row]))


def delete_groups(admin: ShareGroupAdmin, arguments: GroupArguments) -> None:
    """--delete; groups that are no share groups, or in use, are not asked for."""
    listed = {each.group_id: each for each in admin.list_groups(PROTOCOL_TYPES, types=TYPES)}
    ids = list(listed) if arguments.all_groups else list(dict.fromkeys(arguments.group))
    failed: dict[str, str] = {}
    for group_id in ids:
        if group_id not in listed:
            text = f"Group '{group_id}' is not a share group."
            failed[group_id] = f"{class_name(ErrorCode.GROUP_ID_NOT_FOUND)}: {text}"
        elif listed[group_id].state not in IDLE:
            text = f"Share group '{group_id}' is not EMPTY."
            failed[group_id] = f"{class_name(ErrorCode.NON_EMPTY_GROUP)}: {text}"
    outcome = admin.delete_groups([each for each in ids if each not in failed])
    failed |= {each: of_code(error) for each, error in outcome.items() if error is not ErrorCode.NONE}
    deleted = ", ".join(f"'{group_id}'" for group_id in sorted(outcome) if group_id not in failed)
    if not failed:
        click.echo(f"Deletion of requested share groups ({deleted}) was successful.")
        return
    print_error("Deletion of some share groups failed:")
    for group_id, why in sorted(failed.items()):
        click.echo(f"* Group '{group_id}' could not be deleted due to: {why}")
    if deleted:
        click.echo(f"\nThese share groups were deleted successfully: {deleted}")


def delete_offsets(admin: ShareGroupAdmin, arguments: GroupArguments) -> None:
    """--delete-offsets of one group, for whole topics."""
    group_id = the_group(arguments)
    topics = sorted(dict.fromkeys(arguments.topic))
    try:
        outcome = admin.delete_topics(group_id, topics)
    except ClientError as error:
        if error.error is None:
            raise
        print_error(
            str(error) if error.error in GROUP_LEVEL else f"Encounter some unknown error: {error.error.name}"
        )
        outcome = dict.fromkeys(topics, (error.error, str(error)))
    rows = [
        (topic, "Successful" if error is ErrorCode.NONE else f"Error: {text}")
        for topic, (error, text) in sorted(outcome.items())
    ]
    print_table(table([TOPIC, Column("STATUS")], rows))


def the_group(arguments: GroupArguments) -> str:
    """The one group of an action that takes one."""
    if len(arguments.group) > 1:
        raise Failed("Found multiple arguments for option group, but you asked for only one")
    return arguments.group[0]


def reset_offsets(admin: ShareGroupAdmin, arguments: GroupArguments) -> None:
    """--reset-offsets: shows the new offsets, and writes them with --execute."""
    if arguments.to_offset is not None and not re.fullmatch(r"[-+]?\d+", arguments.to_offset):
        raise Failed(f"Cannot parse argument '{arguments.to_offset}' of option to-offset")
    group_id = the_group(arguments)
    try:
        state = admin.describe([group_id])[group_id].state
    except ClientError as error:
        if error.error is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise Refused(str(error)) from error
        state = "Dead"
    if state not in IDLE:
        raise Refused(f"Share group '{group_id}' is not empty.")
    plan = new_offsets(admin, group_id, arguments)
    if arguments.execute and plan:
        admin.alter(group_id, plan)
    rows = [(group_id, *place, offset) for place, offset in sorted(plan.items())]
    if arguments.export:
        click.echo("".join(csv_line(row[1:]) for row in rows))
    elif not rows:
        click.echo()
    else:
        columns = [GROUP, TOPIC, Column("PARTITION", 10), Column("NEW-OFFSET")]
        print_table(table(columns, rows))


def new_offsets(admin: ShareGroupAdmin, group_id: str, arguments: GroupArguments) -> Offsets:
    """The offsets that the chosen strategy gives to the chosen partitions of a group."""
    strategies = Strategies(admin.client, admin.coordinators.timeout_s)
    if arguments.topic:
        places = topic_places(admin.client, arguments.topic)
    else:
        places = sorted(admin.offsets(group_id))
    check_places(admin.client, places)
    if arguments.to_offset is not None:
        return strategies.inside(dict.fromkeys(places, int(arguments.to_offset)))
    if arguments.to_earliest:
        return strategies.earliest(places)
    if arguments.to_latest:
        return strategies.latest(places)
    if arguments.to_datetime is not None:
        return strategies.at_time(places, parse_datetime(arguments.to_datetime))
    if arguments.from_file is not None:
        return from_file(strategies, group_id, arguments.from_file, group_id)
    known = {place: at.start_offset for place, at in admin.offsets(group_id).items() if at is not None}
    return strategies.current(places, known)
