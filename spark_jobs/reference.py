"""Writes OPTIONS.md, every job's options as its `--help` has them: `python -m spark_jobs.reference`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import click

from spark_jobs.commands import JOBS

PAGE = Path(__file__).with_name("OPTIONS.md")
# options that several jobs have with the same words are told once
SHARED = ("kafka_options", "range_options", "stream_options", "launch_options")


def command_of(name: str) -> click.Command:
    command: click.Command = importlib.import_module(JOBS[name][0]).command
    return command


def lines_of(command: click.Command) -> dict[str, str]:
    """Each option's names and values -> its help with defaults, as a row of a table."""
    context = click.Context(command, info_name=command.name, **command.context_settings)
    found = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            names, text = (" ".join(part.split()).replace("|", "\\|") for part in record)
            found[names] = text.replace("<", "&lt;")
    return found


def shared() -> dict[str, str]:
    options = importlib.import_module("spark_jobs.options")

    def nothing() -> None:
        """Only a carrier of options."""

    for name in reversed(SHARED):
        nothing = getattr(options, name)(nothing)
    return lines_of(click.command("shared")(nothing))


def page() -> Iterator[str]:
    yield "# Options of the jobs"
    yield ""
    yield "Written by `python -m spark_jobs.reference` from the commands; `NAME --help` says the same."
    yield ""
    common = shared()
    yield from section("Shared: cluster, source, stream, Spark", common)
    yield "Each job has those that it needs; where one means something else there, its own section says so."
    yield ""
    for name in JOBS:
        own = {names: text for names, text in lines_of(command_of(name)).items() if common.get(names) != text}
        yield from section(name, own)


def section(title: str, rows: dict[str, str]) -> Iterator[str]:
    yield from (f"## {title}", "", "| option | meaning |", "|---|---|")
    yield from (f"| `{names}` | {text} |" for names, text in rows.items())
    yield ""


if __name__ == "__main__":
    PAGE.write_text("\n".join(page()).rstrip() + "\n", encoding="utf-8")
