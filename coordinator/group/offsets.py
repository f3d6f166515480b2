"""The offsets of all groups on one partition of __consumer_offsets: committed ones and those of open
transactions.

Committing an older offset is legal. A commit inside a transaction waits under its producer until the end
marker: COMMIT publishes it where its record lies behind that of the committed one, so a plain commit that
came later survives; ABORT drops it. A tombstone removes both the committed offset and what is pending for it.

Operations look at live state and return records; only `replay` changes state. Reads (`fetch`) see what is
committed to the log. Who may commit, and whether topics exist, is checked by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from coordinator.group.records import (
    NO_EXPIRY,
    NO_LEADER_EPOCH,
    OffsetKey,
    Stored,
    UnknownRecords,
    known_offset_key,
    offset_key,
    offset_tombstones,
    offset_value,
    read_offset_key,
    read_offset_value,
)
from coordinator.journal import Journal, JournaledTable
from coordinator.result import CoordinatorRecord
from coordinator.shard import NOT_TRANSACTIONAL
from protocol.errors import ErrorCode

METADATA_MAX_BYTES = 4096
"""Default of offset.metadata.max.bytes; it counts UTF-16 units in spite of its name."""
NO_OFFSET = -1
NO_RETENTION = -1
NOW = -1
_RECORD_OFFSET: Final = 5  # of Stored
_SHORT_ENOUGH = 2  # a character is two UTF-16 units at most

TopicPartition: TypeAlias = tuple[str, int]


class Commit(NamedTuple):
    """What a client asks to have committed for one partition. `commit_ms` -1: now."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str | None = None
    commit_ms: int = NOW


class Fetched(NamedTuple):
    """What OffsetFetch answers for one partition."""

    topic: str
    partition: int
    offset: int = NO_OFFSET
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


class Offsets:
    """State and operations; `journal` is the shard's."""

    def __init__(
        self, journal: Journal, unknown: UnknownRecords, metadata_max_bytes: int = METADATA_MAX_BYTES
    ) -> None:
        self._metadata_max_bytes = metadata_max_bytes
        self._unknown = unknown
        self._strings: dict[str, str] | None = {}  # while loading: each name once, however often it comes
        self.committed: JournaledTable[str, TopicPartition, Stored] = JournaledTable(journal)
        self.pending: JournaledTable[int, OffsetKey, Stored] = JournaledTable(journal)
        self.producers: JournaledTable[str, TopicPartition, tuple[int, ...]] = JournaledTable(journal)

    def commit(
        self, group: str, commits: Iterable[Commit], now_ms: int, retention_ms: int = NO_RETENTION
    ) -> tuple[list[CoordinatorRecord], list[ErrorCode]]:
        """Records and one error for each commit; those refused have no record, the others go on.

        `retention_ms` is the request's own (versions 2 to 4), -1 for the broker's rule. Serves OffsetCommit
        and TxnOffsetCommit alike: whose transaction it is stands in the batch.
        """
        expire_ms = NO_EXPIRY if retention_ms < 0 else now_ms + retention_ms
        records: list[CoordinatorRecord] = []
        errors: list[ErrorCode] = []
        for topic, partition, offset, leader_epoch, given, commit_ms in commits:
            metadata = given or ""
            if self._too_long(metadata):
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            errors.append(ErrorCode.NONE)
            at_ms = now_ms if commit_ms == NOW else commit_ms
            value = offset_value(offset, leader_epoch, metadata, at_ms, expire_ms)
            records.append(CoordinatorRecord(offset_key(group, topic, partition), value))
        return records, errors

    def delete(self, group: str, partitions: Iterable[TopicPartition]) -> list[CoordinatorRecord]:
        """Tombstones for those of the partitions that have something committed or pending."""
        return offset_tombstones(group, (cell for cell in partitions if self._has(group, cell)))

    def delete_group(self, group: str) -> list[CoordinatorRecord]:
        """Tombstones for everything of a group, pending offsets included."""
        return offset_tombstones(group, self._cells(group))

    def delete_topics(
        self, groups: Iterable[str], gone: Callable[[str, int], bool]
    ) -> list[CoordinatorRecord]:
        """Tombstones in these groups for partitions that do not exist any more (`gone(topic, partition)`)."""
        records: list[CoordinatorRecord] = []
        for group in groups:
            records += offset_tombstones(group, (cell for cell in self._cells(group) if gone(*cell)))
        return records

    def fetch(
        self, group: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool = False
    ) -> list[Fetched]:
        """Offsets by committed records; None for partitions means all that the group has.

        With `require_stable` by all records, so the answer has to wait for them (a write without records),
        and a partition that a transaction may still move answers UNSTABLE_OFFSET_COMMIT.
        """
        row = self.committed.row(group) if require_stable else self.committed.committed_row(group)
        if partitions is None:
            partitions = list(row)
        found: list[Fetched] = []
        for cell in partitions:
            stored = row.get(cell)
            if require_stable and self.producers.get(group, cell):
                found.append(Fetched(*cell, error=ErrorCode.UNSTABLE_OFFSET_COMMIT))
            elif stored is None:
                found.append(Fetched(*cell))
            else:
                found.append(Fetched(*cell, stored[0], stored[1], stored[2]))
        return found

    def cells(self, group: str) -> list[TopicPartition]:
        """What a group has something committed for, be it that of records on their way."""
        row, committed = self.committed.row(group), self.committed.committed_row(group)
        return list(row) if committed is row else list(dict.fromkeys(committed) | dict.fromkeys(row))

    def groups(self) -> list[str]:
        """Groups that have offsets, committed or pending; live."""
        return list(dict.fromkeys(self.committed.outer_keys()) | dict.fromkeys(self.producers.outer_keys()))

    def has_any(self, group: str) -> bool:
        """Whether a group has anything committed or pending; a group that has is not removed."""
        return bool(self.committed.row(group) or self.producers.row(group))

    def is_pending(self, group: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may move this offset; it does not expire then."""
        return bool(self.producers.get(group, (topic, partition)))

    def replay(self, key: bytes, value: bytes | None, record_offset: int, producer_id: int) -> None:
        """Apply an offset record (key type 0 or 1). Raises MalformedMessage."""
        strings = self._strings
        if strings is None:
            group, topic, partition = known_offset_key(key)
        else:
            group, topic, partition = read_offset_key(key)
            group = strings.setdefault(group, group)
            topic = strings.setdefault(topic, topic)
        cell = (topic, partition)
        if value is None:
            self._remove(group, cell)
            return
        stored = read_offset_value(value, record_offset, self._unknown)
        if stored is None:
            return
        if producer_id == NOT_TRANSACTIONAL:
            self.committed.put(group, cell, stored)
            return
        self.pending.put(producer_id, OffsetKey(group, topic, partition), stored)
        waiting = self.producers.get(group, cell) or ()
        if producer_id not in waiting:
            self.producers.put(group, cell, (*waiting, producer_id))

    def put(self, group: str, cell: TopicPartition, stored: Stored) -> None:
        """Apply the record of a commit whose parts are known; `replay` for one outside a transaction."""
        self.committed.put(group, cell, stored)

    def replay_end_marker(self, producer_id: int, commit: bool) -> None:
        """Publish or drop what is pending for a producer."""
        for key, stored in list(self.pending.row(producer_id).items()):
            cell = (key.topic, key.partition)
            self.pending.remove(producer_id, key)
            self._forget_producer(key.group, cell, producer_id)
            if commit:
                known = self.committed.get(key.group, cell)
                if known is None or stored[_RECORD_OFFSET] > known[_RECORD_OFFSET]:
                    self.committed.put(key.group, cell, stored)

    def loaded(self) -> None:
        """A load is over: let go of the strings that it shared between records."""
        self._strings = None

    def _cells(self, group: str) -> Iterable[TopicPartition]:
        """What a group has something committed or pending for, live."""
        row, waiting = self.committed.row(group), self.producers.row(group)
        return dict.fromkeys(row) | dict.fromkeys(waiting) if waiting else row

    def _remove(self, group: str, cell: TopicPartition) -> None:
        self.committed.remove(group, cell)
        waiting = self.producers.get(group, cell)
        if waiting is None:
            return
        key = OffsetKey(group, *cell)
        for producer_id in waiting:
            self.pending.remove(producer_id, key)
        self.producers.remove(group, cell)

    def _forget_producer(self, group: str, cell: TopicPartition, producer_id: int) -> None:
        rest = tuple(other for other in self.producers.get(group, cell) or () if other != producer_id)
        if rest:
            self.producers.put(group, cell, rest)
        else:
            self.producers.remove(group, cell)

    def _has(self, group: str, cell: TopicPartition) -> bool:
        return self.committed.get(group, cell) is not None or bool(self.producers.get(group, cell))

    def _too_long(self, metadata: str) -> bool:
        limit = self._metadata_max_bytes
        if len(metadata) * _SHORT_ENOUGH <= limit:
            return False
        return len(metadata.encode("utf-16-be", "surrogatepass")) // 2 > limit
