"""The options of `ottla consumer-groups`, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass

import click

from ottla.cli.group_errors import Refused
from ottla.cli.group_options import (
    GroupArguments,
    declare,
    flagged,
    only_action,
    refuse_bad_describe,
    refuse_lonely,
    refuse_more_than_one,
    refuse_together,
)
from ottla.cli.options import Command

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
DEFAULT_TIMEOUT_MS = 5000

# In the order in which they are compared with each other.
SCENARIOS = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "shift-by",
    "from-file",
)

NO_ACTION_WARNING = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will "
    "require either --dry-run or --execute to be specified. You should add the --dry-run option explicitly "
    "if you are scripting this command and want to keep the current default behavior without prompting."
)


@dataclass(slots=True)
class Arguments(GroupArguments):
    """The options of one call; `type` is "" without value."""

    validate_regex: str | None
    by_duration: str | None
    shift_by: str | None
    type: str | None


def consumer_group_options(command: Command) -> Command:
    """Declares all options."""
    flags = {
        "list": "List groups.",
        "describe": "Show groups: their offsets, members or state.",
        "delete": "Delete groups.",
        "reset-offsets": "Change committed offsets of groups without members.",
        "delete-offsets": "Delete committed offsets of a group.",
        "all-groups": "All groups.",
        "all-topics": "All topics that the group has committed offsets for.",
        "dry-run": "Show new offsets, change nothing (the default).",
        "execute": "Write the new offsets.",
        "export": "Print new offsets as CSV, for --from-file.",
        "to-earliest": "New offsets: the first ones.",
        "to-latest": "New offsets: the ends.",
        "to-current": "New offsets: the committed ones.",
        "members": "With --describe: the group's members.",
        "verbose": "With --describe: more columns.",
        "offsets": "With --describe: offsets and lag (the default).",
    }
    values = {
        "validate-regex": ("REGEX", "Tell whether RE2 takes a regular expression."),
        "to-offset": ("N", "New offset: this one."),
        "from-file": (
            "FILE",
            "New offsets: from CSV, lines topic,partition,offset or with the group before.",
        ),
        "to-datetime": ("YYYY-MM-DDThh:mm:ss.sss", "New offsets: the first record of that time or later."),
        "by-duration": ("PnDTnHnMnS", "New offsets: the first record that is not older."),
        "shift-by": ("N", "New offsets: the committed ones plus N."),
    }
    type_option = click.option(
        "--type", is_flag=False, flag_value="", metavar="[TYPE,...]", help="Groups' type; or only such."
    )
    topics = "A topic, or partitions of it; several times."
    return declare(type_option(command), flags, values, "TOPIC[:N,N]", topics, DEFAULT_TIMEOUT_MS)


def check_unavailable(given: Arguments) -> None:
    """Options that other ones must accompany."""
    refuse_lonely(given, ["type"] if given.type is not None and not given.list else [])


def check_arguments(given: Arguments) -> None:
    """What can be refused without asking a broker, in Kafka's order; warns of a reset that is none."""
    if given.describe:
        refuse_bad_describe(given)
    if given.delete:
        if not given.group and not given.all_groups:
            raise Refused("Option [delete] takes one of these options: [all-groups], [group]")
        if given.topic:
            raise Refused(
                "The consumer does not support topic-specific offset deletion from a consumer group."
            )
    if given.delete_offsets and not (given.group and given.topic):
        raise Refused("Option [delete-offsets] takes the following options: [topic], [group]")
    if given.reset_offsets:
        check_reset(given)
    refuse_together(given, "group", ("all-groups",))
    refuse_together(given, "group", ("list",))
    refuse_together(given, "topic", ("list", "describe"))


def check_reset(given: Arguments) -> None:
    """The options of --reset-offsets."""
    if given.dry_run and given.execute:
        raise Refused("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.dry_run and not given.execute:
        click.echo(NO_ACTION_WARNING, err=True)
    if not given.group and not given.all_groups:
        raise Refused("Option [reset-offsets] takes one of these options: [all-groups], [group]")
    refuse_more_than_one(given, SCENARIOS)


def the_action(given: Arguments) -> str:
    """The one action that was asked for."""
    action = only_action(given, ACTIONS)
    if action is None:
        raise Refused(f"Command must include exactly one action: {flagged(ACTIONS)}")
    return action
