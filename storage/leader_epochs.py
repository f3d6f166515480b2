"""Which leader epoch began at which offset: a short ascending list per partition, kept in
`leader-epoch-checkpoint` (KIP-101, KIP-279).

Invariant: epochs and start offsets both strictly increase. The file is written with each change, and synced
by the next flush of the log, before the recovery point moves: what a power cut takes from it lies above the
recovery point, where recovery finds the epochs in the batches. After a cut it may have an entry too many,
which loading removes. A change that finds no room in the file is in memory and gets into the file with the
next assignment. Read on first use, so that a broker with thousands of partitions starts without opening it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from runtime.files import FileSystem
from storage.checkpoints import parse_integer, read_entries, write_entries
from storage.errors import CorruptCheckpoint

UNDEFINED = -1
logger = logging.getLogger(__name__)


class EpochEnd(NamedTuple):
    """Where an epoch ends: the epoch found and its end offset (exclusive); -1, -1 if unknown."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one partition. Offsets are first offsets of an epoch."""

    __slots__ = ("_entries", "_files", "_path", "_range", "_synced", "_unwritten", "writes")

    def __init__(self, files: FileSystem, path: str) -> None:
        self._files = files
        self._path = path
        self._entries: list[tuple[int, int]] | None = None
        self._range: tuple[int, int] | None = None
        self._unwritten = False
        self.writes = self._synced = 0

    def restrict(self, start_offset: int, end_offset: int) -> None:
        """Note the bounds of the loaded log; applied when the file is read, which may have stale entries."""
        self._range = (start_offset, end_offset)
        if self._entries is not None:
            self._apply_range()

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), ascending. Not to be changed by the caller."""
        if self._entries is None:
            self._entries = []
            try:
                for number, (epoch, start) in enumerate(
                    read_entries(self._files, self._path, 2, torn=True), 3
                ):
                    self._insert(
                        parse_integer(epoch, self._path, number), parse_integer(start, self._path, number)
                    )
            except CorruptCheckpoint as error:
                logger.warning("%s; its epochs are unknown", error)
                self._entries.clear()
            self._apply_range()
        return self._entries

    def _apply_range(self) -> None:
        if self._range is not None:
            start, end = self._range
            self._range = None
            self.truncate_from_end(end)
            self.truncate_from_start(start)

    @property
    def latest_epoch(self) -> int:
        """-1 when no epoch is known."""
        entries = self.entries
        return entries[-1][0] if entries else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> None:
        """Epoch `epoch` writes from `start_offset` on; in the file before this returns if it is news."""
        if epoch < 0:
            raise ValueError(f"leader epoch {epoch} is negative")
        if self._insert(epoch, start_offset) or self._unwritten:
            self._persist()

    def assign_all(self, entries: Iterable[tuple[int, int]]) -> None:
        """`assign` for each, with one change of the file: after a crash it has all of them or none."""
        if [entry for entry in entries if self._insert(*entry)]:
            self._persist()

    def _insert(self, epoch: int, start_offset: int) -> bool:
        entries = self.entries
        if entries and entries[-1][0] == epoch and start_offset >= entries[-1][1]:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
            entries.pop()
        entries.append((epoch, start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """End of the greatest epoch not above the asked one (OffsetForLeaderEpoch, KIP-101)."""
        entries = self.entries
        if epoch == UNDEFINED or not entries or epoch > entries[-1][0]:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == entries[-1][0]:
            return EpochEnd(epoch, log_end_offset)
        if epoch < entries[0][0]:
            return EpochEnd(epoch, entries[0][1])
        found, end = entries[0]
        for candidate, start in entries:
            if candidate > epoch:
                end = start
                break
            found = candidate
        return EpochEnd(found, end)

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote the record at `offset`; -1 below the first entry."""
        found = UNDEFINED
        for epoch, start in self.entries:
            if start > offset:
                break
            found = epoch
        return found

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that begin at or after `end_offset`."""
        entries = self.entries
        if end_offset >= 0 and entries and entries[-1][1] >= end_offset:
            while entries and entries[-1][1] >= end_offset:
                entries.pop()
            self._persist()

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now begins at `start_offset`: the epoch in force there is kept and moved up to it."""
        entries = self.entries
        if not entries or start_offset <= entries[0][1]:
            return
        below = [entry for entry in entries if entry[1] <= start_offset]
        entries[: len(below)] = [(below[-1][0], start_offset)]
        self._persist()

    def clip(self, end_offset: int) -> None:
        """After a failed write: an epoch assigned beyond the end really begins at it."""
        entries = self.entries
        if entries and entries[-1][1] > end_offset:
            epoch = entries[-1][0]
            self._insert(epoch, end_offset)
            self._persist()

    def clear(self) -> None:
        if self.entries:
            self.entries.clear()
            self._persist()

    def _persist(self) -> None:
        self._unwritten = True
        rows = (f"{epoch} {start}" for epoch, start in self.entries)
        write_entries(self._files, self._path, rows, durable=False)
        self._unwritten = False
        self.writes += 1

    def moved(self, path: str) -> None:
        """The file has another name now."""
        self._path = path

    def unsynced(self) -> str | None:
        """The path, if the file was written since it was last synced."""
        return self._path if self.writes > self._synced else None

    def doubt(self) -> None:
        """The process before this one may have written the file and not synced it."""
        self.writes += 1

    def synced(self, writes: int) -> None:
        """The file was synced as it was after that many writes."""
        self._synced = max(self._synced, writes)
