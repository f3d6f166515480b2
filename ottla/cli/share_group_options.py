"""The options of `ottla share-groups`, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import click

from ottla.cli.consumer_group_options import bracketed
from ottla.cli.group_errors import Refused
from ottla.cli.options import Command, bootstrap_option, command_config_option
from ottla.version import __version__

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
SCOPES = ("topic", "all-topics", "from-file")
DEFAULT_TIMEOUT_MS = 30_000

# In the order in which they are compared with each other.
SCENARIOS = ("to-offset", "to-datetime", "to-earliest", "to-latest", "to-current", "from-file")


@dataclass(slots=True)
class Arguments:
    """The options of one call under their names with underscores; `state` is "" without value."""

    list: bool
    describe: bool
    delete: bool
    reset_offsets: bool
    delete_offsets: bool
    group: tuple[str, ...]
    all_groups: bool
    topic: tuple[str, ...]
    all_topics: bool
    timeout: int
    dry_run: bool
    execute: bool
    export: bool
    to_offset: str | None
    from_file: str | None
    to_datetime: str | None
    to_earliest: bool
    to_latest: bool
    to_current: bool
    members: bool
    verbose: bool
    offsets: bool
    state: str | None

    def has(self, option: str) -> bool:
        """Whether an option was given."""
        value = getattr(self, option.replace("-", "_"))
        return value is not None and value is not False and value != ()


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
    for name, text in reversed(flags.items()):
        command = click.option(f"--{name}", name.replace("-", "_"), is_flag=True, help=text)(command)
    for name, (metavar, text) in reversed(values.items()):
        command = click.option(f"--{name}", metavar=metavar, help=text)(command)
    for decorator in (
        click.option("--group", multiple=True, metavar="ID", help="A group; may be given several times."),
        click.option("--topic", multiple=True, metavar="TOPIC[:N,N]", help="A topic; several times."),
        click.option(
            "--state",
            is_flag=False,
            flag_value="",
            metavar="[STATE,...]",
            help="Groups' state; or only such.",
        ),
        click.option("--timeout", type=int, default=DEFAULT_TIMEOUT_MS, metavar="MS", help="Patience."),
        command_config_option,
        bootstrap_option,
        click.version_option(__version__, message="%(version)s"),
    ):
        command = decorator(command)
    return command


def check_unavailable(given: Arguments) -> None:
    """Options that other ones must accompany."""
    lonely = [name for name in ("members", "verbose", "offsets") if given.has(name) and not given.describe]
    if given.state is not None and not (given.describe or given.list):
        lonely.append("state")
    if lonely:
        raise Refused(
            f"Option(s) {bracketed(lonely)} are unavailable given other options on the command line"
        )


def check_arguments(given: Arguments) -> None:
    """What can be refused without asking a broker, in Kafka's order."""
    if given.describe:
        check_describe(given)
    if given.delete:
        check_delete(given)
    if given.delete_offsets and not (given.group and given.topic):
        raise Refused("Option [delete-offsets] takes the following options: [group], [topic]")
    if given.reset_offsets:
        check_reset(given)
    refuse_together(given, "group", ("all-groups", "list"))
    refuse_together(given, "topic", ("list", "describe"))


def check_describe(given: Arguments) -> None:
    """The options of --describe."""
    if not given.group and not given.all_groups:
        raise Refused("Option [describe] takes one of these options: [all-groups], [group]")
    if sum(given.has(name) for name in ("members", "offsets", "state")) > 1:
        raise Refused("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if given.state:
        raise Refused("Option [describe] does not take a value for [state]")


def check_delete(given: Arguments) -> None:
    """The options of --delete."""
    if not given.group and not given.all_groups:
        raise Refused("Option [delete] takes the options [group] or [all-groups].")
    if given.group and given.all_groups:
        raise Refused("Option [delete] takes either [group] or [all-groups], not both.")
    if given.topic or given.all_topics:
        raise Refused("Option [delete] does not take the options [topic] or [all-topics].")


def check_reset(given: Arguments) -> None:
    """The options of --reset-offsets."""
    if given.dry_run and given.execute:
        raise Refused("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not given.dry_run and not given.execute:
        raise Refused("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not given.group:
        raise Refused("Option [reset-offsets] takes the option: [group]")
    if not any(map(given.has, SCOPES)):
        raise Refused(f"Option [reset-offsets] takes one of these options: {one_of(SCOPES)}")
    for scope in SCOPES:
        refuse_together(given, scope, (other for other in SCOPES if other != scope))
    if not any(map(given.has, SCENARIOS)):
        raise Refused(f"Option [reset-offsets] takes one of these options: {one_of(SCENARIOS)}")
    for scenario in SCENARIOS:
        refuse_together(given, scenario, (other for other in SCENARIOS if other != scenario))


def refuse_together(given: Arguments, option: str, others: Iterable[str]) -> None:
    """Refuses one option beside others."""
    if given.has(option):
        for other in others:
            if given.has(other):
                raise Refused(f'Option "[{option}]" can\'t be used with option "[{other}]"')


def the_action(given: Arguments) -> str:
    """The one action that was asked for."""
    actions = [action for action in ACTIONS if given.has(action)]
    if len(actions) != 1:
        listed = ", ".join(f"--{action}" for action in ACTIONS)
        raise Refused(f"Command must include exactly one action: {listed}.")
    return actions[0]


def one_of(options: Iterable[str]) -> str:
    """[a], [b]"""
    return ", ".join(f"[{option}]" for option in sorted(options))
