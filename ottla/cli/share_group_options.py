"""The options of `ottla share-groups`, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cli.group_errors import Refused
from ottla.cli.group_options import (
    GroupArguments,
    declare,
    flagged,
    only_action,
    refuse_bad_describe,
    refuse_more_than_one,
    refuse_together,
)
from ottla.cli.options import Command

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCOPES = ("topic", "all-topics", "from-file")
DEFAULT_TIMEOUT_MS = 30_000

# In the order in which they are compared with each other.
SCENARIOS = ("to-offset", "to-datetime", "to-earliest", "to-latest", "to-current", "from-file")


def share_group_options(command: Command) -> Command:
    """Declares all options."""
    flags = {
        "list": "List share groups.",
        "describe": "Show share groups: their offsets, members or state.",
        "delete": "Delete share groups.",
        "reset-offsets": "Have a share group without members begin elsewhere.",
        "delete-offsets": "Have a share group forget topics.",
        "all-groups": "All share groups.",
        "all-topics": "All topics that the group reads.",
        "dry-run": "Show new offsets, change nothing.",
        "execute": "Write the new offsets.",
        "export": "Print new offsets as CSV, for --from-file.",
        "to-earliest": "New offsets: the first ones.",
        "to-latest": "New offsets: the ends.",
        "to-current": "New offsets: the present ones.",
        "members": "With --describe: the group's members.",
        "verbose": "With --describe: more columns.",
        "offsets": "With --describe: start offsets and lag (the default).",
    }
    values = {
        "to-offset": ("N", "New offset: this one."),
        "from-file": ("FILE", "New offsets: from CSV, lines topic,partition,offset."),
        "to-datetime": ("YYYY-MM-DDThh:mm:ss.sss", "New offsets: the first record of that time or later."),
    }
    return declare(command, flags, values, "TOPIC[:N,N]", "A topic; several times.", DEFAULT_TIMEOUT_MS)


def check_arguments(given: GroupArguments) -> None:
    """What can be refused without asking a broker, in Kafka's order."""
    if given.describe:
        refuse_bad_describe(given)
    if given.delete:
        check_delete(given)
    if given.delete_offsets and not (given.group and given.topic):
        raise Refused("Option [delete-offsets] takes the following options: [group], [topic]")
    if given.reset_offsets:
        check_reset(given)
    refuse_together(given, "group", ("all-groups", "list"))
    refuse_together(given, "topic", ("list", "describe"))


def check_delete(given: GroupArguments) -> None:
    """The options of --delete."""
    if not given.group and not given.all_groups:
        raise Refused("Option [delete] takes the options [group] or [all-groups].")
    if given.group and given.all_groups:
        raise Refused("Option [delete] takes either [group] or [all-groups], not both.")
    if given.topic or given.all_topics:
        raise Refused("Option [delete] does not take the options [topic] or [all-topics].")


def check_reset(given: GroupArguments) -> None:
    """The options of --reset-offsets."""
    if given.dry_run and given.execute:
        raise Refused("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.dry_run and not given.execute:
        raise Refused("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not given.group:
        raise Refused("Option [reset-offsets] takes the option: [group]")
    if not any(map(given.has, SCOPES)):
        raise Refused(f"Option [reset-offsets] takes one of these options: {one_of(SCOPES)}")
    refuse_more_than_one(given, SCOPES)
    if not any(map(given.has, SCENARIOS)):
        raise Refused(f"Option [reset-offsets] takes one of these options: {one_of(SCENARIOS)}")
    refuse_more_than_one(given, SCENARIOS)


def the_action(given: GroupArguments) -> str:
    """The one action that was asked for."""
    action = only_action(given, ACTIONS)
    if action is None:
        raise Refused(f"Command must include exactly one action: {flagged(ACTIONS)}.")
    return action


def one_of(options: Iterable[str]) -> str:
    """[a], [b]"""
    return ", ".join(f"[{option}]" for option in sorted(options))
