"""The table that people read and the JSON that programs compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.rounds import Row

FLOOR = "floor"
LABEL_WIDTH = 52
COLUMN_WIDTH = 26


def header(columns: Sequence[str]) -> str:
    """The line above a section."""
    names = "".join(f"{name:>{COLUMN_WIDTH}}" for name in columns)
    of_floor = f"{'of floor':>10}" if FLOOR in columns else ""
    return f"{'':{LABEL_WIDTH}}{names}{'ratio':>8}{of_floor}{'CPU':>28}"


def line(row: Row, columns: Sequence[str]) -> str:
    """One row: medians with their spread, the ratio of the first column to the second, the brokers' CPU."""
    text = f"{row.label + ', ' + row.unit:{LABEL_WIDTH}}"
    for column in columns:
        text += f"{_figure(row, column):>{COLUMN_WIDTH}}"
    ratio = ratio_of(row, columns)
    text += f"{'' if ratio is None else format(ratio, '.2f') + 'x':>8}"
    if FLOOR in columns:
        first, floor = row.value(columns[0]), row.value(FLOOR)
        text += f"{format(first / floor, '.2f') if first and floor else '':>10}"
    costs = [row.cpu(column) for column in columns]
    known = [_rounded(cost) for cost in costs if cost is not None]
    if known:
        text += f"{' / '.join(known) + ' ' + row.cpu_unit:>28}"
    return "\n".join([text.rstrip(), *(f"    ! {note}" for note in row.notes)])


def _rounded(cost: float) -> str:
    return format(cost, ",.0f" if cost >= 1000 else ".3g")


def ratio_of(row: Row, columns: Sequence[str]) -> float | None:
    """How many times as good the first broker is as the second; for times and sizes less is better."""
    rivals = [column for column in columns if column != FLOOR]
    if len(rivals) < 2:
        return None
    first, second = row.value(rivals[0]), row.value(rivals[1])
    return first / second if first and second else None


def as_json(rows: Sequence[Row], columns: Sequence[str], about: dict[str, Any]) -> str:
    """Everything that was measured, round by round."""
    return json.dumps(
        {
            **about,
            "columns": list(columns),
            "rows": [
                {
                    "section": row.section,
                    "label": row.label,
                    "unit": row.unit,
                    "lower_is_better": row.lower_is_better,
                    "cpu_unit": row.cpu_unit,
                    "median": {column: row.value(column) for column in row.samples},
                    "rounds": {k: [sample.value for sample in v] for k, v in row.samples.items()},
                    "cpu": {column: row.cpu(column) for column in row.samples},
                    "ratio": ratio_of(row, row.columns or columns),
                    "notes": row.notes,
                }
                for row in rows
            ],
        },
        indent=1,
    )


def save(text: str, folder: Path, stamp: str) -> Path:
    """Write a result file of its own for each run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stamp}.json"
    path.write_text(text)
    return path


def _figure(row: Row, column: str) -> str:
    value, spread = row.value(column), row.spread(column)
    if value is None or spread is None:
        return "-"
    digits = row.digits
    text = format(value, f",.{digits}f")
    if spread[0] == spread[1]:
        return text
    return f"{text} ({_short(spread[0], digits)}-{_short(spread[1], digits)})"


def _short(value: float, digits: int) -> str:
    return f"{value / 1000:.0f}k" if value >= 10_000 else format(value, f".{digits}f")
