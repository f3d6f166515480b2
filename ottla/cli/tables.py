"""Tables as Kafka's tools print them: columns padded to the right, one space between, no lines around.

A column has a least width; one that grows is as wide as its widest cell. Width 0 leaves a column as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import click

MISSING = "-"


class Column(NamedTuple):
    """A column's title and least width."""

    title: str
    width: int = 0
    grows: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> list[str]:
    """The header's line and one for each row; None shows as "-"."""
    texts = [[MISSING if cell is None else str(cell) for cell in row] for row in rows]
    widths = [
        max([column.width, *(len(row[at]) for row in texts)]) if column.grows else column.width
        for at, column in enumerate(columns)
    ]
    lines = [[column.title for column in columns], *texts]
    return [" ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]


def print_table(lines: Iterable[str]) -> None:
    """Prints a table below an empty line."""
    click.echo("\n" + "\n".join(lines))


def print_tabbed(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table whose columns are as wide as their widest cell, each with a tab behind."""
    lines = [list(titles), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(titles))]
    for line in lines:
        click.echo("".join(f"{cell:{width}}\t" for cell, width in zip(line, widths, strict=True)))
