"""State that is ahead of the log's committed end, and the way back.

Records change a shard's state when they are appended, before they are committed. Each change through a
`JournaledTable` leaves the value it replaced in the shard's `Journal`, stamped with the offset of its record.
Committing an offset forgets what lies before it; rolling back to an offset restores, newest first, what
changed at it or later. Readers of committed state get, for a cell that changed since, the oldest value kept.

The cost lies with the few cells in flight: a table at rest is a dict of dicts, and a load, whose records are
all committed, writes no journal.

A commit of ten thousand offsets changes as many cells, so the one value that such a change leaves stands for
itself; a cell that changes again before that is committed has a queue of them.

Invariants: entries stand in the order of their offsets; a cell has as many entries in the journal as values
in its table's `_replaced`, one that does not change has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar, cast

RowKey = TypeVar("RowKey", bound=Hashable)
CellKey = TypeVar("CellKey", bound=Hashable)
V = TypeVar("V")


class Journal:
    """The undo log of one shard. Offsets are those of records; `offset` is the record being applied now."""

    def __init__(self) -> None:
        self.recording = False
        self.offset = 0
        self._entries: deque[tuple[int, JournaledTable[Any, Any, Any], Hashable, Hashable]] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, table: JournaledTable[Any, Any, Any], outer: Hashable, inner: Hashable) -> None:
        """A cell of `table` is about to change; the table keeps its value."""
        assert not self._entries or self._entries[-1][0] <= self.offset, "records are applied in order"
        self._entries.append((self.offset, table, outer, inner))

    def commit(self, end_offset: int) -> None:
        """Records before `end_offset` are committed: their changes can't be taken back any more."""
        entries = self._entries
        next_entry = entries.popleft
        while entries and entries[0][0] < end_offset:
            _, table, outer, inner = next_entry()
            table.forget_oldest(outer, inner)

    def roll_back(self, offset: int) -> None:
        """Records from `offset` on are not in the log: restore what they changed."""
        entries = self._entries
        while entries and entries[-1][0] >= offset:
            _, table, outer, inner = entries.pop()
            table.restore_newest(outer, inner)


class _Several(deque[Any]):
    """The values that several changes of a cell left, oldest first."""

    __slots__ = ()


class JournaledTable(Generic[RowKey, CellKey, V]):
    """Cells under two keys, with a live and a committed view. A row exists while it has cells."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._rows: dict[RowKey, dict[CellKey, V]] = {}
        self._replaced: dict[RowKey, dict[CellKey, V | _Several | None]] = {}

    def __len__(self) -> int:
        """Rows, live."""
        return len(self._rows)

    def outer_keys(self) -> list[RowKey]:
        """Keys of all rows, live; a copy."""
        return list(self._rows)

    def committed_outer_keys(self) -> list[RowKey]:
        """Keys of all rows that have a committed cell."""
        replaced = self._replaced
        keys = [key for key in self._rows if key not in replaced or self._has_committed(key)]
        keys += [key for key in replaced if key not in self._rows and self._has_committed(key)]
        return keys

    def get(self, outer: RowKey, inner: CellKey) -> V | None:
        """The live value of a cell."""
        row = self._rows.get(outer)
        return None if row is None else row.get(inner)

    def row(self, outer: RowKey) -> dict[CellKey, V]:
        """The live cells of a row. To look at only, and not across changes."""
        return self._rows.get(outer, cast("dict[CellKey, V]", _EMPTY))

    def committed(self, outer: RowKey, inner: CellKey) -> V | None:
        """The value of a cell by the records that are committed."""
        replaced = self._replaced.get(outer)
        if replaced is not None and inner in replaced:
            value: V | None = _oldest(replaced[inner])
            return value
        return self.get(outer, inner)

    def committed_row(self, outer: RowKey) -> dict[CellKey, V]:
        """The cells of a row by the records that are committed. To look at only."""
        row, replaced = self.row(outer), self._replaced.get(outer)
        if replaced is None:
            return row
        row = dict(row)
        for inner, left in replaced.items():
            value = _oldest(left)
            if value is None:
                row.pop(inner, None)
            else:
                row[inner] = value
        return row

    def is_changing(self, outer: RowKey, inner: CellKey) -> bool:
        """Whether a change of a cell is not committed yet."""
        return inner in self._replaced.get(outer, ())

    def put(self, outer: RowKey, inner: CellKey, value: V) -> None:
        """Set a cell."""
        row = self._rows.get(outer)
        if self._journal.recording:
            self._keep(outer, inner, None if row is None else row.get(inner))
        if row is None:
            self._rows[outer] = {inner: value}
        else:
            row[inner] = value

    def remove(self, outer: RowKey, inner: CellKey) -> None:
        """Clear a cell; nothing happens where it is not set."""
        row = self._rows.get(outer)
        if row is None or inner not in row:
            return
        value = row.pop(inner)
        if not row:
            del self._rows[outer]
        if self._journal.recording:
            self._keep(outer, inner, value)

    def take(self) -> dict[RowKey, dict[CellKey, V]]:
        """Forget everything, as when a partition is unloaded; the journal must be dropped with it. The rows
        that were there are for `coordinator.freeing`.
        """
        rows, self._rows, self._replaced = self._rows, {}, {}
        return rows

    def items(self) -> Iterator[tuple[RowKey, CellKey, V]]:
        """All live cells."""
        for outer, row in self._rows.items():
            for inner, value in row.items():
                yield outer, inner, value

    def forget_oldest(self, outer: Any, inner: Any) -> None:
        """For the journal: the oldest change of this cell is committed."""
        left = self._replaced[outer][inner]
        if type(left) is _Several and len(left) > 1:
            left.popleft()
        else:
            self._settled(outer, inner)

    def restore_newest(self, outer: Any, inner: Any) -> None:
        """For the journal: the newest change of this cell is taken back."""
        left: Any = self._replaced[outer][inner]
        value = left.pop() if type(left) is _Several else left
        if type(left) is not _Several or not left:
            self._settled(outer, inner)
        if value is None:
            self._drop(outer, inner)
        else:
            self._rows.setdefault(outer, {})[inner] = value

    def _keep(self, outer: RowKey, inner: CellKey, value: V | None) -> None:
        row = self._replaced.get(outer)
        if row is None:
            self._replaced[outer] = {inner: value}
        elif inner not in row:
            row[inner] = value
        elif type(left := row[inner]) is _Several:
            left.append(value)
        else:
            row[inner] = _Several((left, value))
        self._journal.note(self, outer, inner)

    def _settled(self, outer: RowKey, inner: CellKey) -> None:
        row = self._replaced[outer]
        del row[inner]
        if not row:
            del self._replaced[outer]

    def _drop(self, outer: RowKey, inner: CellKey) -> None:
        row = self._rows.get(outer)
        if row is not None and row.pop(inner, None) is not None and not row:
            del self._rows[outer]

    def _has_committed(self, outer: RowKey) -> bool:
        return bool(self.committed_row(outer))


def _oldest(left: Any) -> Any:
    return left[0] if type(left) is _Several else left


_EMPTY: dict[Any, Any] = {}
