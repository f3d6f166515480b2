"""What a fetch of committed offsets may say, from the requests alone.

Each commit and deletion is a step, numbered in the order in which coordinators handled them; a step's value
is its own, so that a fetch names the step it saw. The newest step that was acknowledged holds; a newer one
whose fate nobody knows (its coordinator crashed, or the answer was an error that does not tell) may hold. A
commit of a transaction counts in its place among the steps once its end marker is written.

What has been seen never goes back, unless a later step asks for that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

NONE = -1
Cell = tuple[str, int]


class Fate(Enum):
    HELD = "acknowledged"
    OPEN = "perhaps"
    HIDDEN = "in an open transaction"
    LOST = "refused, or aborted"


@dataclass(slots=True)
class Step:
    number: int
    value: int
    made_ms: int
    fate: Fate = Fate.OPEN
    waits_at: object = None  # the broker that has not answered yet


@dataclass(slots=True)
class History:
    """All steps of one group and partition, and the newest that was seen."""

    steps: list[Step] = field(default_factory=lambda: [Step(0, NONE, 0, Fate.HELD)])
    seen: int = 0

    def possible(self) -> list[Step]:
        """From the newest step that holds for sure, or was seen, on."""
        oldest = max(
            (step.number for step in self.steps if step.fate is Fate.HELD or step.number == self.seen),
            default=0,
        )
        return [
            step for step in self.steps
            if step.number >= oldest and step.fate in (Fate.HELD, Fate.OPEN)
        ]  # fmt: skip


class OffsetModel:
    """Histories of all groups."""

    def __init__(self) -> None:
        self._numbers = 0
        self.histories: dict[tuple[str, Cell], History] = {}
        self.fetches = 0

    def history(self, group: str, cell: Cell) -> History:
        return self.histories.setdefault((group, cell), History())

    def cells(self, group: str) -> list[Cell]:
        return [cell for name, cell in self.histories if name == group]

    def step(
        self, group: str, cell: Cell, now_ms: int, *, delete: bool = False, hidden: bool = False
    ) -> Step:
        """A coordinator handles a commit (its offset is the step's number) or a deletion now."""
        self._numbers += 1
        step = Step(self._numbers, NONE if delete else self._numbers, now_ms)
        if hidden:
            step.fate = Fate.HIDDEN
        self.history(group, cell).steps.append(step)
        return step

    def fetched(self, group: str, cell: Cell, offset: int, before: list[Step]) -> Step:
        """A leading coordinator has answered a fetch; `before` was `possible` when it handled the request.

        Returns the step that it shows; the oldest where several have the same offset.
        """
        self.fetches += 1
        history = self.history(group, cell)
        oldest = max((step.number for step in before if step.fate is Fate.HELD), default=0)
        possible = [
            step for step in before
            if step.number >= max(oldest, history.seen) and step.fate in (Fate.HELD, Fate.OPEN)
        ]  # fmt: skip
        fitting = [step for step in possible if step.value == offset]
        told = [(step.number, step.value, step.fate.value) for step in possible]
        assert fitting, f"{group} {cell}: {offset} is committed, {history.seen} was seen, possible are {told}"
        history.seen = fitting[0].number
        return fitting[0]

    def settle(self, steps: list[Step], fate: Fate) -> None:
        for step in steps:
            step.fate = fate

    def committed_since_ms(self, group: str, cell: Cell) -> int:
        """When the offset that holds was committed; the oldest time that is possible."""
        times = [step.made_ms for step in self.history(group, cell).possible() if step.value != NONE]
        return min(times, default=0)
