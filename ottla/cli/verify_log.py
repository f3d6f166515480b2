"""`ottla verify-log`: everything in a log directory is looked at, and what is wrong with it is told.

Not one of Kafka's tools. Exit code 0: nothing is damaged; 1: something is, or the directory can't be read.
"""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.options import ToolFailed
from ottla.version import __version__
from runtime.os_files import OsFileSystem
from storage.verify import Totals, verify_dir


@click.command(name="verify-log", short_help="Look for damage in a log directory.")
@click.argument(
    "directories", nargs=-1, required=True, metavar="DIRECTORY...", type=click.Path(path_type=Path)
)
@click.option("--deep-iteration", is_flag=True, help="Decompress and read every record, too.")
@click.version_option(__version__, message="%(version)s")
def command(directories: tuple[Path, ...], deep_iteration: bool) -> None:
    """Look for damage in log directories, or in single partitions' directories; the broker must be stopped.

    Nothing is changed. A line is printed for each finding, and one at the end that says what was looked at.
    """
    files = OsFileSystem()
    totals = Totals()
    damaged = notes = 0
    for directory in directories:
        if not directory.is_dir():
            raise ToolFailed(f"{directory} is no directory")
        try:
            for path, text, damage in verify_dir(files, str(directory), totals, deep=deep_iteration):
                click.echo(f"{'damaged' if damage else 'note'}: {path}: {text}")
                damaged += damage
                notes += not damage
        except OSError as error:
            raise ToolFailed(f"{directory}: {error}") from error
    read = f", {totals.records:,} records" if deep_iteration else ""
    click.echo(
        f"Looked at {totals.partitions:,} partitions, {totals.segments:,} segments, "
        f"{totals.batches:,} batches{read}, {totals.size_bytes:,} bytes: "
        f"{damaged:,} damaged, {notes:,} notes"
    )
    if damaged:
        raise click.exceptions.Exit(1)
