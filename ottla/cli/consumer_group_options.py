"""The options of `ottla consumer-groups`, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import click

from ottla.cli.group_errors import Refused
from ottla.cli.options import Command, bootstrap_option, command_config_option
from ottla.version import __version__

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
class Arguments:
    """The options of one call under their names with underscores; `state` and `type` are "" without value."""

    list: bool
    describe: bool
    delete: bool
    reset_offsets: bool
    delete_offsets: bool
    validate_regex: str | None
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
    by_duration: str | None
    to_earliest: bool
    to_latest: bool
    to_current: bool
    shift_by: str | None
    members: bool
    verbose: bool
    offsets: bool
    state: str | None
    type: str | None

    def has(self, option: str) -> bool:
        """Whether an option was given."""
        value = getattr(self, option.replace("-", "_"))
        return value is not None and value is not False and value != ()


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
    for name, text in reversed(flags.items()):
        command = click.option(f"--{name}", name.replace("-", "_"), is_flag=True, help=text)(command)
    for name, (metavar, text) in reversed(values.items()):
        command = click.option(f"--{name}", metavar=metavar, help=text)(command)
    for decorator in (
        click.option("--group", multiple=True, metavar="ID", help="A group; may be given several times."),
        click.option(
            "--topic",
            multiple=True,
            metavar="TOPIC[:N,N]",
            help="A topic, or partitions of it; several times.",
        ),
        click.option(
            "--state",
            is_flag=False,
            flag_value="",
            metavar="[STATE,...]",
            help="Groups' state; or only such.",
        ),
        click.option(
            "--type", is_flag=False, flag_value="", metavar="[TYPE,...]", help="Groups' type; or only such."
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
    if given.type is not None and not given.list:
        lonely.append("type")
    if lonely:
        raise Refused(
            f"Option(s) {bracketed(lonely)} are unavailable given other options on the command line"
        )


def check_arguments(given: Arguments) -> None:
    """What can be refused without asking a broker, in Kafka's order; warns of a reset that is none."""
    selected = given.group or given.all_groups
    if given.describe:
        if not selected:
            raise Refused("Option [describe] takes one of these options: [all-groups], [group]")
        views = [name for name in ("members", "offsets", "state") if given.has(name)]
        if len(views) > 1:
            raise Refused(
                "Option [describe] takes at most one of these options: [members], [offsets], [state]"
            )
        if given.state:
            raise Refused("Option [describe] does not take a value for [state]")
    if given.delete:
        if not selected:
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
        raise Refused(f"Command must include exactly one action: {listed}")
    return actions[0]


def bracketed(names: Iterable[str]) -> str:
    """[a, b]"""
    return f"[{', '.join(names)}]"
