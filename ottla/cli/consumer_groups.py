"""`ottla consumer-groups`: list, describe, delete groups and reset their offsets, as Kafka's
ConsumerGroupCommand does.

Like there, a failure after the options were understood is told on standard output and ends with exit code 0;
what is wrong with the options goes to standard error with exit code 1. Rows that Kafka prints in the order of
a hash table come in the order of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import click

from ottla.cli.consumer_group_options import (
    Arguments,
    check_arguments,
    check_unavailable,
    consumer_group_options,
    the_action,
)
from ottla.cli.describe_groups import describe
from ottla.cli.group_errors import Failed, Refused, print_error
from ottla.cli.java_errors import named, of_code
from ottla.cli.offset_strategies import parse_places
from ottla.cli.options import ToolFailed, connect, read_properties
from ottla.cli.reset_offsets import reset
from ottla.cli.tables import Column, print_table, table
from ottla.client import ClientError
from ottla.groups.admin import GroupAdmin
from ottla.groups.descriptions import CONSUMER_PROTOCOL_TYPES
from ottla.groups.log_offsets import partition_leaders
from protocol.errors import ErrorCode

STATES = ("CompletingRebalance", "PreparingRebalance", "Assigning", "Reconciling", "Stable", "Empty", "Dead")
TYPES = ("Consumer", "Classic")
GROUP_LEVEL = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
PARTITION_LEVEL = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
WHOLE_TOPIC = -1
UNKNOWN = "Unknown"

# What Kafka's CSV writer leaves without quotes: short texts of characters behind the comma.
LONG_TEXT, FIRST_PLAIN = 24, "-"

# RE2's words for what is wrong with a pattern -> those of the Java library that Kafka uses.
REGEX_REASONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}


@click.command(name="consumer-groups", short_help="List, describe, delete groups, reset their offsets.")
@consumer_group_options
@click.pass_context
def command(
    ctx: click.Context, /, bootstrap_server: str, command_config: Path | None, **options: object
) -> None:
    """List, describe, delete groups and reset their offsets."""
    arguments = Arguments(**options)  # type: ignore[arg-type]
    try:
        check_unavailable(arguments)
        check_arguments(arguments)
        action = the_action(arguments)
        if action == "validate-regex":
            validate_regex(arguments.validate_regex or "")
            return
        client = connect(bootstrap_server, read_properties(command_config))
        with client:
            run(action, GroupAdmin(client, arguments.timeout / 1000), arguments)
    except Refused as error:
        raise ToolFailed(str(error)) from error


def run(action: str, admin: GroupAdmin, arguments: Arguments) -> None:
    """Does what was asked; a failure is told and is the end."""
    act: Callable[[GroupAdmin, Arguments], None] = {
        "list": list_groups,
        "describe": describe_groups,
        "delete": delete_groups,
        "reset-offsets": reset_offsets,
        "delete-offsets": delete_offsets,
    }[action]
    try:
        act(admin, arguments)
    except Failed as error:
        print_error(f"Executing consumer group command failed due to {error}")
    except ClientError as error:
        print_error(f"Executing consumer group command failed due to {named(error)}")


def validate_regex(pattern: str) -> None:
    """--validate-regex: whether RE2, which brokers use for subscriptions, takes a pattern."""
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0].decode().partition(": ")[0]
        click.echo(f"The regular expression `{pattern}` is invalid: {REGEX_REASONS.get(reason, reason)}.")
    else:
        click.echo(f"The regular expression `{pattern}` is valid.")


def list_groups(admin: GroupAdmin, arguments: Arguments) -> None:
    """--list, with what --state and --type add and choose."""
    states = chosen(arguments.state, STATES, "state")
    types = chosen(arguments.type, TYPES, "types")
    groups = admin.list_groups(CONSUMER_PROTOCOL_TYPES, states, types or TYPES)
    if arguments.state is None and arguments.type is None:
        for group in groups:
            click.echo(group.group_id)
        return
    width = max([15, *(len(group.group_id) for group in groups)]) + 10
    columns = [Column("GROUP", width)]
    if arguments.type is not None:
        columns.append(Column("TYPE", 20))
    if arguments.state is not None:
        columns.append(Column("STATE", 20))
    cells = {"GROUP": "group_id", "TYPE": "type", "STATE": "state"}
    rows = [[getattr(group, cells[column.title]) or UNKNOWN for column in columns] for group in groups]
    click.echo("\n".join(table(columns, rows)))


def chosen(given: str | None, valid: Sequence[str], what: str) -> list[str]:
    """The states or types of a comma separated list, in any case, under their proper names."""
    if not given:
        return []
    known = {name.lower(): name for name in valid}
    parts = [part.strip().lower() for part in given.split(",")]
    if any(part not in known for part in parts):
        raise Refused(f"Invalid {what} list '{given}'. Valid {what.rstrip('s')}s are: {', '.join(valid)}")
    return [known[part] for part in dict.fromkeys(parts)]


def groups_of(admin: GroupAdmin, arguments: Arguments) -> list[str]:
    """The groups meant by --group or --all-groups."""
    if arguments.all_groups:
        return [group.group_id for group in admin.list_groups(CONSUMER_PROTOCOL_TYPES, types=TYPES)]
    return list(dict.fromkeys(arguments.group))


def describe_groups(admin: GroupAdmin, arguments: Arguments) -> None:
    """--describe."""
    view = "members" if arguments.members else "state" if arguments.state is not None else "offsets"
    describe(admin, groups_of(admin, arguments), view, arguments.verbose)


def delete_groups(admin: GroupAdmin, arguments: Arguments) -> None:
    """--delete."""
    outcome = admin.delete_groups(groups_of(admin, arguments))
    failed = {group_id: error for group_id, error in outcome.items() if error != ErrorCode.NONE}
    deleted = ", ".join(f"'{group_id}'" for group_id in sorted(outcome) if group_id not in failed)
    if not failed:
        click.echo(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for group_id, error in sorted(failed.items()):
        click.echo(f"* Group '{group_id}' could not be deleted due to: {of_code(error)}")
    if deleted:
        click.echo(f"\nThese consumer groups were deleted successfully: {deleted}")


def reset_offsets(admin: GroupAdmin, arguments: Arguments) -> None:
    """--reset-offsets: shows the new offsets, and writes them with --execute."""
    plan = reset(admin, groups_of(admin, arguments), arguments)
    rows = [
        (group_id, topic, partition, offset)
        for group_id in sorted(plan)
        for (topic, partition), offset in sorted(plan[group_id].items())
    ]
    if arguments.export:
        first = 1 if len(arguments.group) == 1 else 0
        click.echo("".join(csv_line(row[first:]) for row in rows))
        return
    if not plan:
        click.echo()
        return
    columns = (
        Column("GROUP", max([15, *map(len, plan)])),
        Column("TOPIC", 15, grows=True),
        Column("PARTITION", 10),
        Column("NEW-OFFSET"),
    )
    print_table(table(columns, rows))


def csv_line(cells: Sequence[object]) -> str:
    """A line of --export: long texts, and those with special characters, in quotes."""
    return ",".join(csv_cell(str(cell)) for cell in cells) + "\n"


def csv_cell(text: str) -> str:
    """One cell as Kafka's CSV writer puts it down."""
    if len(text) <= LONG_TEXT and all(character >= FIRST_PLAIN for character in text):
        return text
    return '"' + text.replace('"', '""') + '"'


def delete_offsets(admin: GroupAdmin, arguments: Arguments) -> None:
    """--delete-offsets of one group, for whole topics or for partitions of them."""
    group_id = arguments.group[-1]
    outcome: dict[tuple[str, int], str | None] = {}
    places = [place for topic in arguments.topic if ":" in topic for place in parse_places(topic)]
    for topic in (topic for topic in arguments.topic if ":" not in topic):
        try:
            places += sorted(partition_leaders(admin.client, [topic]))
        except ClientError as error:
            outcome[topic, WHOLE_TOPIC] = named(error)
    top = ErrorCode.NONE
    try:
        results = admin.delete_offsets(group_id, places)
    except ClientError as error:
        if error.error is None:
            raise
        top = error.error
        outcome.update(dict.fromkeys(places, of_code(top)))
    else:
        for place, code in results.items():
            outcome[place] = None if code == ErrorCode.NONE else of_code(code)
            if top == ErrorCode.NONE:
                top = code
    say_outcome(group_id, top)
    rows = [
        (topic, None if partition == WHOLE_TOPIC else partition, f"Error: {error}" if error else "Successful")
        for (topic, partition), error in sorted(outcome.items(), key=lambda item: f"{item[0][0]}{item[0][1]}")
    ]
    print_table(table([Column("TOPIC", 15, grows=True), Column("PARTITION", 10), Column("STATUS", 15)], rows))


def say_outcome(group_id: str, error: ErrorCode) -> None:
    """The first line about deleted offsets."""
    if error == ErrorCode.NONE:
        click.echo(f"Request succeeded for deleting offsets from group {group_id}.")
    elif error in GROUP_LEVEL:
        print_error(error.message)
    elif error in PARTITION_LEVEL:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {error.name}")
