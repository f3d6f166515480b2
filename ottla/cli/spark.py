"""`ottla spark NAME ...`: the Spark jobs of an installed Ottla, which are no import name of their own."""

from __future__ import annotations

import os
import sys

import click

from ottla.paths import library_root


@click.command(
    name="spark",
    short_help="Run a Spark job over topics.",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Run `python -m spark_jobs ARGUMENTS` in place of this process."""
    root = str(library_root())
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    # Spark's Python workers inherit it: nothing of the working directory stands in for our packages
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    os.execve(sys.executable, [sys.executable, "-m", "spark_jobs", *arguments], environment)
