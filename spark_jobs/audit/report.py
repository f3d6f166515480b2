"""What an audit found, as a table for people and as JSON for programs; and whether it passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.audit.partitions import Partition, checksum

KEY_SHOWN = 40


@dataclass(slots=True)
class Example:
    """One record of a finding: its key and its places, `partition@offset`."""

    key: str | None
    left: str | None
    right: str | None

    def __str__(self) -> str:
        key = "no key" if self.key is None else f"key {self.key}"
        left, right = self.left or "-", self.right or "-"
        return f"{key}: {left} -> {right}"


@dataclass(slots=True)
class Check:
    """One question: how many records (or keys) speak against it, and whether that fails the audit."""

    name: str
    meaning: str
    count: int
    fails: bool = True
    examples: list[Example] = field(default_factory=list)
    partitions: dict[str, int] = field(default_factory=dict)  # of the right, of the left for lost records

    @property
    def ok(self) -> bool:
        return self.count == 0 or not self.fails


@dataclass(slots=True)
class SideReport:
    """One side in numbers."""

    name: str
    partitions: list[Partition]
    holes_are: str = ""  # why offsets are missing, where some are
    notes: list[str] = field(default_factory=list)

    @property
    def records(self) -> int:
        return sum(each.records for each in self.partitions)

    @property
    def holes(self) -> int:
        return sum(each.holes for each in self.partitions)


@dataclass(slots=True)
class Report:
    left: SideReport
    right: SideReport
    match: str
    checks: list[Check]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same records equally often, by their checksums."""
        return checksum(self.left.partitions) == checksum(self.right.partitions)

    def check(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "match": self.match,
            "checksums_equal": self.equal,
            "left": side_json(self.left),
            "right": side_json(self.right),
            "checks": {
                check.name: {
                    "count": check.count,
                    "ok": check.ok,
                    "partitions": check.partitions,
                    "examples": [
                        {"key": one.key, "left": one.left, "right": one.right} for one in check.examples
                    ],
                }
                for check in self.checks
            },
        }

    def __str__(self) -> str:
        lines = [*side_lines(self.left), "", *side_lines(self.right), ""]
        for check in self.checks:
            word = "ok" if check.count == 0 else "FAILED" if check.fails else "allowed"
            lines.append(f"{check.name:<10} {check.count:>12,}  {word:<8} {check.meaning}")
            lines += [f"{'':<24} e.g. {example}" for example in check.examples]
        sums = "the same" if self.equal else "different"
        lines += ["", f"checksums {sums}; records recognised by {self.match}"]
        lines.append("PASSED" if self.ok else "FAILED")
        return "\n".join(lines)


def side_json(side: SideReport) -> dict[str, Any]:
    return {
        "name": side.name,
        "records": side.records,
        "checksum": f"{checksum(side.partitions):016x}",
        "holes": side.holes,
        "holes_are": side.holes_are,
        "notes": side.notes,
        "partitions": [
            {
                "partition": each.name,
                "records": each.records,
                "first": each.first,
                "last": each.last,
                "start": each.start,
                "end": each.end,
                "holes": each.holes,
                "runs": each.runs,
                "checksum": each.checksum_text,
            }
            for each in side.partitions
        ],
    }


def side_lines(side: SideReport) -> list[str]:
    rows: list[Sequence[str]] = [("partition", "records", "first", "last", "holes", "checksum")]
    for each in side.partitions:
        first, last = ("-" if place is None else f"{place:,}" for place in (each.first, each.last))
        rows.append((each.name, f"{each.records:,}", first, last, f"{each.holes:,}", each.checksum_text))
    total = f"{checksum(side.partitions):016x}"
    rows.append(("all", f"{side.records:,}", "", "", f"{side.holes:,}", total))
    lines = [side.name, *table(rows)]
    if side.holes:
        lines.append(f"holes: {side.holes_are}")
    return [*lines, *side.notes]


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, numbers to the right."""
    kept = list(rows)
    widths = [max(map(len, column)) for column in zip(*kept, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in kept
    ]


def shown(key: bytes | bytearray | None) -> str | None:
    """A key as text where it is text, else in hexadecimal digits; long ones cut."""
    if key is None:
        return None
    try:
        text = bytes(key).decode()
        text = text if text.isprintable() else f"0x{bytes(key).hex()}"
    except UnicodeDecodeError:
        text = f"0x{bytes(key).hex()}"
    return text if len(text) <= KEY_SHOWN else f"{text[:KEY_SHOWN]}..."
