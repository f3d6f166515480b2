"""What the options of the tools for groups have in common: their names, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from ottla.cli.group_errors import Refused
from ottla.cli.options import Command, bootstrap_option, command_config_option
from ottla.version import __version__


@dataclass(slots=True)
class GroupArguments:
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


def declare(
    command: Command,
    flags: dict[str, str],
    values: dict[str, tuple[str, str]],
    topic: str,
    topic_help: str,
    timeout_ms: int,
) -> Command:
    """The options of a tool: flags with their help, values with what stands for one and their help, and what
    all tools for groups have. `topic` is what stands for a topic.
    """
    for name, text in reversed(flags.items()):
        command = click.option(f"--{name}", name.replace("-", "_"), is_flag=True, help=text)(command)
    for name, (metavar, text) in reversed(values.items()):
        command = click.option(f"--{name}", metavar=metavar, help=text)(command)
    for decorator in (
        click.option("--group", multiple=True, metavar="ID", help="A group; may be given several times."),
        click.option("--topic", multiple=True, metavar=topic, help=topic_help),
        click.option(
            "--state",
            is_flag=False,
            flag_value="",
            metavar="[STATE,...]",
            help="Groups' state; or only such.",
        ),
        click.option("--timeout", type=int, default=timeout_ms, metavar="MS", help="Patience."),
        command_config_option,
        bootstrap_option,
        click.version_option(__version__, message="%(version)s"),
    ):
        command = decorator(command)
    return command


def refuse_lonely(given: GroupArguments, more: Sequence[str] = ()) -> None:
    """Refuses options that other ones must accompany; `more` are those that the tool itself finds."""
    lonely = [name for name in ("members", "verbose", "offsets") if given.has(name) and not given.describe]
    if given.state is not None and not (given.describe or given.list):
        lonely.append("state")
    lonely += more
    if lonely:
        raise Refused(
            f"Option(s) [{', '.join(lonely)}] are unavailable given other options on the command line"
        )


def refuse_bad_describe(given: GroupArguments) -> None:
    """Refuses what makes no sense with --describe."""
    if not given.group and not given.all_groups:
        raise Refused("Option [describe] takes one of these options: [all-groups], [group]")
    if sum(given.has(name) for name in ("members", "offsets", "state")) > 1:
        raise Refused("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if given.state:
        raise Refused("Option [describe] does not take a value for [state]")


def refuse_together(given: GroupArguments, option: str, others: Iterable[str]) -> None:
    """Refuses one option beside others."""
    if given.has(option):
        for other in others:
            if given.has(other):
                raise Refused(f'Option "[{option}]" can\'t be used with option "[{other}]"')


def refuse_more_than_one(given: GroupArguments, options: Sequence[str]) -> None:
    """Refuses two of the options, named in their order."""
    for option in options:
        refuse_together(given, option, (other for other in options if other != option))


def only_action(given: GroupArguments, actions: Sequence[str]) -> str | None:
    """The one action that was asked for; None where there are none or several."""
    asked = [action for action in actions if given.has(action)]
    return asked[0] if len(asked) == 1 else None


def flagged(actions: Sequence[str]) -> str:
    """--a, --b"""
    return ", ".join(f"--{action}" for action in actions)
