"""The producers of one partition: a dictionary by producer id, and the snapshot files that preserve it.

A leader's appends go through `stage` before they are written and are made good by `commit` or taken back by
`rollback`, so that a failed write leaves no trace; a follower's go through `remember` and `replay`, which
checks nothing, and recovery's through `replay` alone. What began and ended of transactions is noted and takes
effect with `commit` or `settle`, in the order of the log. Invariant: `map_end_offset` is the offset up to
which the log is reflected here; a snapshot is named by it.

Any number may be a producer's id, and each costs about 430 bytes: beyond `PRODUCERS_MAX` those that have not
written for longest are forgotten, as if they had expired.
"""

from __future__ import annotations

from typing import TypeAlias

from protocol.errors import ErrorCode
from runtime.files import FileSystem
from storage import names
from storage.errors import AppendRefused, CorruptCheckpoint
from storage.producers.entry import NO_SEQUENCE, NONE, CachedBatch, ProducerEntry, advance, check_sequence
from storage.producers.settings import ProducerSettings
from storage.producers.snapshot import decode_snapshot, encode_snapshot
from storage.producers.transactions import OpenTransactions
from storage.producers.verification import VerificationGuard, Verifications
from storage.txn_index import AbortedTxn

PRODUCERS_MAX = 100_000
EPOCH_MAX = 0x7FFF  # of a producer
_FORGOTTEN_AT_ONCE = 8  # one of so many: finding them takes a walk over all


TxnEvent: TypeAlias = tuple[int, int, int, bool]
"""Producer id, first offset, offset of the marker (-1: the transaction began), whether it was aborted."""


def _expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    """Time is counted from the timestamp of the last batch or marker, which is the producer's to choose."""
    return entry.current_txn_first_offset == NONE and now_ms - entry.last_timestamp >= expiration_ms


class ProducerState:
    """See the module. `directory` is the partition's; it may change when the directory is renamed."""

    __slots__ = (
        "_before",
        "_events",
        "_files",
        "_last_snapshot",
        "_settings",
        "directory",
        "entries",
        "map_end_offset",
        "transactions",
        "unsynced",
        "verifications",
    )

    def __init__(self, files: FileSystem, directory: str, settings: ProducerSettings | None = None) -> None:
        self._files = files
        self._settings = settings or ProducerSettings()
        self.directory = directory
        self.entries: dict[int, ProducerEntry] = {}
        self.transactions = OpenTransactions()
        self.verifications = Verifications()
        self.map_end_offset = 0
        self._last_snapshot = 0
        self.unsynced: list[str] = []  # snapshots that the next flush has to sync
        self._before: dict[int, ProducerEntry | None] = {}  # entries as they were before this turn
        self._events: list[TxnEvent] = []  # of this turn

    def stage(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_offset: int,
        delta: int,
        timestamp: int,
        check_order: bool = True,
        transactional: bool = False,
    ) -> CachedBatch | None:
        """Check a leader's batch and take it over provisionally; a cached batch if it is a duplicate.

        An unknown producer may begin with any sequence (KIP-360). Raises AppendRefused and changes nothing:
        45 and 47 by its sequence and epoch, 48 where it is of no transaction that is known to be open, or not
        of the one that is.
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
            if not transactional and entry.current_txn_first_offset != NONE:
                raise AppendRefused(
                    ErrorCode.INVALID_TXN_STATE,
                    f"Expected transactional write from producer {producer_id}",
                )
            if producer_id not in self._before:
                self._before[producer_id] = entry.copy()
        entry.add(epoch, first_sequence, last_sequence, last_offset, delta, timestamp)
        return None

    def stage_transactional(
        self,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_offset: int,
        delta: int,
        timestamp: int,
        check_order: bool = True,
        guard: VerificationGuard | None = None,
    ) -> CachedBatch | None:
        """`stage` for a batch of a transaction; its first one opens it.

        Raises AppendRefused also with INVALID_TXN_STATE for a transaction that was not verified (KIP-890).
        """
        known = self.entries.get(producer_id)
        if known is not None and check_order:
            again = known.find(epoch, first_sequence, delta)
            if again is not None:
                return again
        if (
            self._settings.verify
            and not self.has_ongoing_transaction(producer_id, epoch)
            and not self.verifications.accepts(producer_id, guard)
        ):
            raise AppendRefused(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        if check_order:
            self._check_verified_sequence(producer_id, first_sequence, new=known is None or not known.batches)
        found = self.stage(
            producer_id, epoch, first_sequence, last_offset, delta, timestamp, check_order, True
        )
        if found is None:
            self.verifications.end(producer_id)
            self._begin(self.entries[producer_id], last_offset - delta)
        return found

    def _check_verified_sequence(self, producer_id: int, first_sequence: int, *, new: bool) -> None:
        """Raises AppendRefused (45) for a batch that others must come before."""
        verification = self.verifications.get(producer_id)
        if verification is None:
            return
        if verification.supports_epoch_bump and first_sequence != 0 and new:
            raise AppendRefused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for producer {producer_id}: {first_sequence} (incoming), 0 is "
                f"expected of a producer of transactions v2 that is not known",
            )
        if first_sequence > verification.lowest_sequence:
            raise AppendRefused(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {producer_id}: {first_sequence} (incoming), "
                f"{verification.lowest_sequence} is the earliest seen and was not written yet",
            )

    def stage_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        commit: bool,
        transaction_version: int = 0,
    ) -> None:
        """Check a marker that the coordinator has written here, and take it over provisionally.

        Raises AppendRefused: 47 for an epoch and 52 for a coordinator's epoch below the known one. From
        transactions of version 2 on a marker raises the epoch, so that the known one is refused as well,
        except where the marker is sent again and has closed its transaction already, or no epoch is left.
        """
        entry = self.entries.get(producer_id)
        if entry is not None:
            repeated = entry.current_txn_first_offset == NONE or epoch == EPOCH_MAX
            if epoch < entry.epoch or (epoch == entry.epoch and transaction_version >= 2 and not repeated):
                raise AppendRefused(
                    ErrorCode.INVALID_PRODUCER_EPOCH,
                    f"Epoch of producer {producer_id} is {epoch} in a marker, which is "
                    f"{'<' if transaction_version < 2 else '<='} the last seen epoch {entry.epoch} "
                    f"(TV{transaction_version})",
                )
            if coordinator_epoch < entry.coordinator_epoch:
                raise AppendRefused(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"Invalid coordinator epoch for producer {producer_id}: {coordinator_epoch} (zombie), "
                    f"{entry.coordinator_epoch} (current)",
                )
        self.remember(producer_id)
        self.replay_marker(producer_id, epoch, coordinator_epoch, offset, timestamp, commit)

    def _begin(self, entry: ProducerEntry, first_offset: int) -> None:
        if entry.current_txn_first_offset == NONE:
            entry.current_txn_first_offset = first_offset
            self._events.append((entry.producer_id, first_offset, NONE, False))

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has a transaction open here in this epoch."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.epoch == epoch and entry.current_txn_first_offset != NONE

    def commit(self, end_offset: int) -> list[AbortedTxn] | None:
        """What was staged is in the log, which now ends at `end_offset`.

        None where no transaction began or ended; otherwise those that were aborted.
        """
        self.map_end_offset = end_offset
        if self._before:
            self._before.clear()
        return self.settle() if self._events else None

    def settle(self) -> list[AbortedTxn]:
        """Let what was noted of transactions take effect; those that were aborted, for the index."""
        aborted = []
        for producer_id, first_offset, marker, was_aborted in self._events:
            if marker == NONE:
                self.transactions.begin(first_offset)
            else:
                stable = self.transactions.end(first_offset, marker)
                if was_aborted:
                    aborted.append(AbortedTxn(producer_id, first_offset, marker, stable))
        self._events.clear()
        return aborted

    def remember(self, producer_id: int) -> None:
        """What is replayed of this producer may have to be taken back."""
        if producer_id not in self._before:
            entry = self.entries.get(producer_id)
            self._before[producer_id] = entry.copy() if entry is not None else None

    def rollback(self) -> None:
        """What was staged since the last commit did not reach the log."""
        for producer_id, entry in self._before.items():
            if entry is None:
                self.entries.pop(producer_id, None)
            else:
                self.entries[producer_id] = entry
        self._before.clear()
        self._events.clear()

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
        """Take over a data batch that is in the log already, whatever its sequence.

        One of a transaction ends the verification that was begun here while this broker led: a later one
        that this broker takes as the leader again is not to be held against its sequence.
        """
        entry = self.entries.get(producer_id)
        if entry is None:
            if len(self.entries) >= PRODUCERS_MAX:
                self._forget_quietest()
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        last_sequence = advance(first_sequence, delta) if first_sequence != NO_SEQUENCE else NO_SEQUENCE
        entry.add(epoch, first_sequence, last_sequence, last_offset, delta, timestamp)
        if transactional:
            self._begin(entry, last_offset - delta)
            self.verifications.end(producer_id)

    def replay_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, commit: bool
    ) -> None:
        """Take over the end of a transaction: it closes the open one and may raise the epoch."""
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id, epoch)
        elif epoch != entry.epoch:
            entry.epoch = epoch
            entry.batches.clear()
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        if entry.current_txn_first_offset != NONE:
            self._events.append((producer_id, entry.current_txn_first_offset, offset, not commit))
            entry.current_txn_first_offset = NONE
        self.verifications.end(producer_id)

    def expire(self, now_ms: int) -> int:
        """Forget producers that wrote nothing for too long and have no open transaction; how many."""
        expiration_ms = self._settings.expiration_ms
        gone = [
            producer_id
            for producer_id, entry in self.entries.items()
            if _expired(entry, now_ms, expiration_ms) and producer_id not in self._before
        ]
        for producer_id in gone:
            del self.entries[producer_id]
        if len(self.verifications):
            self.verifications.expire(now_ms, expiration_ms)
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

    def moved(self, directory: str) -> None:
        """The partition's directory has another name now."""
        self.unsynced = [directory + path.removeprefix(self.directory) for path in self.unsynced]
        self.directory = directory

    def take_over(self, other: ProducerState) -> None:
        """Know what another state of the same log knows: more of each producer's batches, and the guards."""
        self.entries = other.entries
        self.verifications = other.verifications

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
            else:
                self.unsynced.append(path)
        finally:
            handle.close()
        self._last_snapshot = self.map_end_offset
        return path

    def load(self, first_offset: int, end_offset: int, *, keep_newer: bool = False) -> int:
        """Start from the newest valid snapshot in [first, end]; the offset from which to replay the log.

        `first_offset` is the base of the first segment: from an older snapshot the replay would have a gap.
        Damaged snapshots are removed and the next older one is tried; those above `end_offset` are removed
        unless `keep_newer`.
        """
        self._forget()
        for offset in reversed(self.snapshot_offsets()):
            path = self.path_of(offset)
            if offset > end_offset:
                if not keep_newer:
                    self._files.remove(path)
                continue
            if offset < first_offset:
                break
            try:
                loaded = decode_snapshot(self._files.read_bytes(path))
            except CorruptCheckpoint:
                self._files.remove(path)
                continue
            self._take_over(loaded)
            self.unsynced = [path]  # perhaps: who wrote it may have come to no sync of it
            self.map_end_offset = self._last_snapshot = offset
            return offset
        self.map_end_offset = self._last_snapshot = first_offset
        return first_offset

    def _forget(self) -> None:
        self.entries.clear()
        self._before.clear()
        self._events.clear()
        self.transactions.clear()
        self.verifications.clear()

    def _take_over(self, loaded: list[ProducerEntry]) -> None:
        clock, expiration_ms = self._settings.clock, self._settings.expiration_ms
        now_ms = clock.now_ms() if clock is not None else 0
        for entry in loaded:
            if not _expired(entry, now_ms, expiration_ms):
                self.entries[entry.producer_id] = entry
                if entry.current_txn_first_offset != NONE:
                    self.transactions.begin(entry.current_txn_first_offset)

    def clear(self, end_offset: int) -> None:
        """Forget everything and remove all snapshots: the log begins anew at `end_offset`."""
        self._forget()
        for offset in self.snapshot_offsets():
            self._files.remove(self.path_of(offset))
        self.map_end_offset = self._last_snapshot = end_offset

    def set_aside_snapshots(self, below: int) -> list[str]:
        """Rename snapshots of segments that are gone, those with an offset below `below`; the new paths."""
        gone = []
        for offset in self.snapshot_offsets():
            if offset < below:
                path = self.path_of(offset)
                self._files.rename(path, path + names.DELETED)
                gone.append(path + names.DELETED)
        return gone
