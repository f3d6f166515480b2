"""Measuring in turns: A B A B, so that what else the machine does meets all sides alike.

A row is one load; its columns are the brokers and, where there is one, the floor. A column's figure is the
median of its rounds, its spread the lowest and highest.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Sample:
    """One round: the figure, and the broker's CPU time for one unit of work where it could be seen."""

    value: float
    cpu: float | None = None


@dataclass(slots=True)
class Row:
    """One load and what was measured. `cpu_unit` says what `Sample.cpu` counts; `columns` are its own
    where these are not the brokers under test.
    """

    section: str
    label: str
    unit: str
    cpu_unit: str = ""
    lower_is_better: bool = False
    digits: int = 0
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)

    def value(self, column: str) -> float | None:
        """The median of a column."""
        got = self.samples.get(column)
        return statistics.median(sample.value for sample in got) if got else None

    def cpu(self, column: str) -> float | None:
        got = [sample.cpu for sample in self.samples.get(column, ()) if sample.cpu is not None]
        return statistics.median(got) if got else None

    def spread(self, column: str) -> tuple[float, float] | None:
        got = [sample.value for sample in self.samples.get(column, ())]
        return (min(got), max(got)) if got else None


@dataclass(slots=True)
class Plan:
    """How long and how often."""

    rounds: int
    seconds: float
    warm_up_seconds: float
    scale: float = 1.0  # of amounts of data


def measure(row: Row, runners: Mapping[str, Callable[[], Sample]], rounds: int) -> Row:
    """Fill the row, a round of every column after the other. A column that fails is noted and left out."""
    failed: set[str] = set()
    for _ in range(rounds):
        for column, run in runners.items():
            if column in failed:
                continue
            try:
                row.samples.setdefault(column, []).append(run())
            except RuntimeError as error:
                failed.add(column)
                last = str(error).strip().splitlines()[-1:] or [type(error).__name__]
                row.notes.append(f"{column}: {last[0]}")
                print(f"  {row.section}, {row.label}, {column}: {error}", file=sys.stderr)
    return row


def cpu_of(before: float, after: float, units: float) -> float | None:
    """CPU seconds for one unit; None where the broker's time could not be seen."""
    return (after - before) / units if units and after > before else None
