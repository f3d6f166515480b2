"""A share group's partition record by record: slow, plain, and what the state machine is held against.

Each offset has a state of its own; nothing is a batch. Kafka's choice of how much an acquisition takes is not
modelled: the model is told what was acquired and checks that it was right to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from replication.share.runs import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE

FINAL = (ACKNOWLEDGED, ARCHIVED)


@dataclass
class Cell:
    state: int = AVAILABLE
    count: int = 0
    member: str = ""
    deadline_ms: int = 0
    staged: object = None


@dataclass
class Model:
    limit: int
    lock_ms: int
    start: int = 0
    end: int = 0  # exclusive: the first offset that was never acquired
    cells: dict[int, Cell] = field(default_factory=dict)

    def acquired(self, first: int, last: int, count: int, member: str, now_ms: int) -> None:
        for offset in range(first, last + 1):
            assert offset >= self.start
            cell = self.cells.setdefault(offset, Cell())
            assert cell.state == AVAILABLE, (offset, cell)
            assert cell.staged is None, (offset, cell)
            assert count == cell.count + 1
            cell.state, cell.count, cell.member = ACQUIRED, count, member
            cell.deadline_ms = now_ms + self.lock_ms

    def grow(self, end: int) -> None:
        """Everything up to `end`, exclusive, is in flight, taken or not."""
        for offset in range(max(self.end, self.start), end):
            self.cells.setdefault(offset, Cell())
        self.end = max(self.end, end)

    def may_ack(self, first: int, last: int, member: str) -> bool:
        return all(
            (cell := self.cells.get(offset)) is not None and (cell.state, cell.member) == (ACQUIRED, member)
            for offset in range(max(first, self.start), last + 1)
        )

    def stage(self, offset: int, state: int, token: object) -> None:
        cell = self.cells[offset]
        if state == AVAILABLE and cell.count >= self.limit:
            state = ARCHIVED
        if offset < self.start:
            state = ARCHIVED
        cell.staged = (token, cell.state, cell.member)
        cell.state, cell.member = state, ""

    def release(self, member: str, token: object) -> None:
        for offset, cell in self.cells.items():
            if (cell.state, cell.member) == (ACQUIRED, member):
                self.stage(offset, AVAILABLE, token)

    def finish(self, token: object, kept: bool, now_ms: int) -> None:
        for offset, cell in self.cells.items():
            if cell.staged is None or cell.staged[0] is not token:
                continue
            _, state, member = cell.staged
            cell.staged = None
            if not kept:
                if cell.deadline_ms <= now_ms:
                    gone = offset < self.start or cell.count >= self.limit
                    cell.state = ARCHIVED if gone else AVAILABLE
                else:
                    cell.state, cell.member = state, member
        if kept:
            self.advance()

    def expire(self, now_ms: int) -> None:
        for offset, cell in self.cells.items():
            if cell.state == ACQUIRED and cell.deadline_ms <= now_ms:
                gone = offset < self.start or cell.count >= self.limit
                cell.state, cell.member = (ARCHIVED if gone else AVAILABLE), ""

    def move_start(self, offset: int) -> None:
        for at, cell in self.cells.items():
            if at < offset and cell.state == AVAILABLE:
                cell.state, cell.member, cell.staged = ARCHIVED, "", None
        self.start = max(self.start, offset)
        self.grow(self.start)

    def advance(self) -> None:
        """Past what is final, unless something below is still out."""
        if any(
            offset < self.start and (cell.state not in FINAL or cell.staged)
            for offset, cell in self.cells.items()
        ):
            return
        while (cell := self.cells.get(self.start)) is not None and cell.state in FINAL and not cell.staged:
            self.start += 1
        self.cells = {offset: cell for offset, cell in self.cells.items() if offset >= self.start}

    @property
    def next_offset(self) -> int:
        free = [o for o, cell in self.cells.items() if cell.state == AVAILABLE and not cell.staged]
        return min(free, default=self.end)

    @property
    def complete_count(self) -> int:
        return sum(cell.state in FINAL for o, cell in self.cells.items() if o >= self.start)
