"""The producers of one partition: a dictionary by producer id, and the snapshot files that preserve it.

A leader's appends go through `stage` before they are written and are made good by `commit` or taken back by
`rollback`, so that a failed write leaves no trace. Replay (recovery, followers) goes through `replay` and
checks nothing. Invariant: `map_end_offset` is the offset up to which the log is reflected here; a snapshot is
named by it.

Any number may be a producer's id, and each costs about 430 bytes: beyond `PRODUCERS_MAX` those that have not
written for longest are forgotten, as if they had expired.
"""

from __future__ import annotations

from runtime.files import FileSystem
from storage import names
from storage.errors import CorruptCheckpoint
from storage.producers.entry import NO_SEQUENCE, NONE, CachedBatch, ProducerEntry, advance, check_sequence
from storage.producers.snapshot import decode_snapshot, encode_snapshot

PRODUCERS_MAX = 100_000
_FORGOTTEN_AT_ONCE = 8  # one of so many: finding them takes a walk over all


class ProducerState:
    """See the module. `directory` is the partition's; it may change when the directory is renamed."""

    __slots__ = ("_before", "_files", "_last_snapshot", "directory", "entries", "map_end_offset")

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self.directory = directory
        self.entries: dict[int, ProducerEntry] = {}
        self.map_end_offset = 0
        self._last_snapshot = 0
        self._before: dict[int, ProducerEntry | None] = {}  # entries as they were before this turn

    def stage(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_offset: int,
        delta: int,
        timestamp: int,
        check_order: bool = True,
    ) -> CachedBatch | None:
        """Check a leader's batch and take it over provisionally; a cached batch if it is a duplicate.

        An unknown producer may begin with any sequence (KIP-360). Raises AppendRefused and changes nothing.
        """
        entry = self.entries.get(producer_id)
        last_sequence = advance(first_sequence, delta) if first_sequence != NO_SEQUENCE else NO_SEQUENCE
        if entry is None:
            if len(self.entries) >= PRODUCERS_MAX:
                self._forget_quietest()
            self._before.setdefault(producer_id, None)
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        else:
            found = check_sequence(entry, epoch, first_sequence, last_sequence, check_order)
            if found is not None:
                return found
            if producer_id not in self._before:
                self._before[producer_id] = entry.copy()
        entry.add(epoch, first_sequence, last_sequence, last_offset, delta, timestamp)
        return None

    def commit(self, end_offset: int) -> None:
        """What was staged is in the log, which now ends at `end_offset`."""
        self.map_end_offset = end_offset
        if self._before:
            self._before.clear()

    def rollback(self) -> None:
        """What was staged since the last commit did not reach the log."""
        for producer_id, entry in self._before.items():
            if entry is None:
                self.entries.pop(producer_id, None)
            else:
                self.entries[producer_id] = entry
        self._before.clear()

    def replay(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_offset: int,
        delta: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """Take over a data batch that is in the log already, whatever its sequence."""
        entry = self.entries.get(producer_id)
        if entry is None:
            if len(self.entries) >= PRODUCERS_MAX:
                self._forget_quietest()
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        last_sequence = advance(first_sequence, delta) if first_sequence != NO_SEQUENCE else NO_SEQUENCE
        entry.add(epoch, first_sequence, last_sequence, last_offset, delta, timestamp)
        if transactional and entry.current_txn_first_offset == NONE:
            entry.current_txn_first_offset = last_offset - delta

    def replay_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, timestamp: int) -> None:
        """Take over the end of a transaction: it closes the open one and may raise the epoch."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        if epoch > entry.epoch:
            entry.epoch = epoch
            entry.batches.clear()
        entry.coordinator_epoch = max(entry.coordinator_epoch, coordinator_epoch)
        entry.last_timestamp = timestamp
        entry.current_txn_first_offset = NONE

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers idle for longer than `expiration_ms` that have no open transaction; how many."""
        gone = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset == NONE and now_ms - entry.last_timestamp > expiration_ms
        ]
        for producer_id in gone:
            del self.entries[producer_id]
        return len(gone)

    def _forget_quietest(self) -> None:
        """Make room, by the place of the last batch in the log: timestamps are the producers' to choose."""
        quiet = [
            (entry.last_offset, producer_id)
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset == NONE and producer_id not in self._before
        ]
        quiet.sort()
        for _, producer_id in quiet[: len(quiet) // _FORGOTTEN_AT_ONCE + 1]:
            del self.entries[producer_id]

    # --- snapshot files -------------------------------------------------------------------------------------

    def snapshot_offsets(self) -> list[int]:
        """Offsets of the snapshot files in the directory, ascending."""
        return sorted(
            names.offset_of(name)
            for name in self._files.list_dir(self.directory)
            if name.endswith(names.SNAPSHOT)
        )

    def path_of(self, offset: int) -> str:
        return f"{self.directory}/{names.segment_file(offset, names.SNAPSHOT)}"

    def take_snapshot(self, *, sync: bool = False) -> str | None:
        """Write the state at `map_end_offset`; the path, or None if that offset has its snapshot already."""
        if self.map_end_offset <= self._last_snapshot:
            return None
        path = self.path_of(self.map_end_offset)
        data = encode_snapshot(self.entries.values())
        if self._files.exists(path):
            self._files.remove(path)
        handle = self._files.open(path, create=True)
        try:
            handle.append([data])
            if sync:
                handle.sync()
        finally:
            handle.close()
        self._last_snapshot = self.map_end_offset
        return path

    def load(self, first_offset: int, end_offset: int) -> int:
        """Start from the newest valid snapshot in [first, end]; the offset from which to replay the log.

        `first_offset` is the base of the first segment: from an older snapshot the replay would have a gap.
        Damaged snapshots are removed and the next older one is tried; those above `end_offset` are removed.
        """
        self.entries.clear()
        self._before.clear()
        for offset in reversed(self.snapshot_offsets()):
            path = self.path_of(offset)
            if offset > end_offset:
                self._files.remove(path)
                continue
            if offset < first_offset:
                break
            try:
                loaded = decode_snapshot(self._files.read_bytes(path))
            except CorruptCheckpoint:
                self._files.remove(path)
                continue
            self.entries = {entry.producer_id: entry for entry in loaded}
            self.map_end_offset = self._last_snapshot = offset
            return offset
        self.map_end_offset = self._last_snapshot = first_offset
        return first_offset

    def clear(self, end_offset: int) -> None:
        """Forget everything and remove all snapshots: the log begins anew at `end_offset`."""
        self.entries.clear()
        self._before.clear()
        for offset in self.snapshot_offsets():
            self._files.remove(self.path_of(offset))
        self.map_end_offset = self._last_snapshot = end_offset

    def remove_snapshots(self, below: int) -> None:
        """Remove snapshots of segments that are gone: those with an offset below `below`."""
        for offset in self.snapshot_offsets():
            if offset < below:
                self._files.remove(self.path_of(offset))
