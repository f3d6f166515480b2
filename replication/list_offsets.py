"""ListOffsets for one partition: an offset by time, or by one of the special timestamps.

-1 latest, -2 earliest, and from later versions on -3 the record with the greatest timestamp (v7), -4 the
earliest kept locally (v8), -5 the latest that was tiered (v9) and -6 the earliest that waits for tiering
(v11); there is no tiered storage here, so that -4 is the start of the log and -5 and -6 find nothing. Other
negative values are refused with 35.

Nothing found is no error: offset and timestamp are -1. A record at or beyond the isolation limit is not
found.

A new leader's high watermark may lag behind what its predecessor told: until it has reached the start of the
leader's epoch, consumers that ask for the end, or for a time that leads there, are told to ask again (78; 5
before v5), so that no offset goes back.

What memory answers is answered at once. A time has to be searched for in files and inside batches, which may
be large and compressed: that is a `Search`, which the caller runs in a thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from replication.partition import Partition
from storage.errors import CorruptLog, StorageError

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6

SINCE_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

CONSUMER = -1
DEBUGGING_REPLICA = -2
"""As replica id: a consumer that may see what is not committed yet."""


@dataclass(slots=True, frozen=True)
class OffsetQuery:
    """What is asked of one partition. `max_offsets` is known to v0 only, `leader_epoch` to v4 and later."""

    timestamp: int
    leader_epoch: int = -1
    max_offsets: int = 1


@dataclass(slots=True)
class FoundOffset:
    """The answer; `old_style` holds the offsets of v0, newest first."""

    error: ErrorCode = ErrorCode.NONE
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1
    old_style: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Search:
    """A query that needs the files. `limit` is the offset below which the asker may see, None for all;
    `now_ms` the time of the request.
    """

    partition: Partition
    query: OffsetQuery
    limit: int | None
    now_ms: int
    old_style: bool
    absent: ErrorCode = ErrorCode.NONE  # the error where nothing is found

    def run(self) -> FoundOffset:
        """The answer. Any thread; takes as long as reading and decompressing a batch does."""
        log = self.partition.log
        found = self._search(log)
        while self.partition.log is not log:  # it moved to another directory meanwhile
            log = self.partition.log
            found = self._search(log)
        return found

    def _search(self, log: PartitionLog) -> FoundOffset:
        timestamp = self.query.timestamp
        limit = log.end_offset if self.limit is None else self.limit
        try:
            if self.old_style:
                return _old_style(self.partition, self.query, self.limit, self.now_ms)
            if timestamp == MAX_TIMESTAMP:
                found = log.max_timestamp_offset(limit)
            else:
                found = log.offset_for_timestamp(timestamp, limit)
        except StorageError as failed:
            return FoundOffset(failed.error)
        except CorruptLog:
            return FoundOffset(ErrorCode.CORRUPT_MESSAGE)
        except ValueError:
            if not log.closed:
                raise
            return FoundOffset(ErrorCode.KAFKA_STORAGE_ERROR)  # its files were closed during the search
        if found is None:
            return FoundOffset(self.absent)
        return FoundOffset(offset=found.offset, timestamp=found.timestamp, leader_epoch=found.leader_epoch)


def find_offset(
    partition: Partition,
    query: OffsetQuery,
    *,
    version: int,
    now_ms: int,
    isolation: int = 0,
    replica_id: int = CONSUMER,
) -> FoundOffset | Search:
    """Answer one query, or tell what has to be searched for. Raises nothing and reads no file."""
    timestamp = query.timestamp
    if timestamp < 0 and version < SINCE_VERSION.get(timestamp, version + 1):
        return FoundOffset(ErrorCode.UNSUPPORTED_VERSION)
    error = partition.check(query.leader_epoch, leader_required=replica_id != DEBUGGING_REPLICA)
    if error != ErrorCode.NONE:
        return FoundOffset(error)
    if isolation not in (0, 1) or (version == 0 and query.max_offsets < 0):
        return FoundOffset(ErrorCode.UNKNOWN_SERVER_ERROR)
    limit = partition.read_limit(isolation) if replica_id == CONSUMER else None
    absent = _end_error(partition, version) if replica_id == CONSUMER else ErrorCode.NONE
    if timestamp >= 0 or timestamp == MAX_TIMESTAMP:
        return Search(partition, query, limit, now_ms, version == 0, absent)
    if version == 0:
        return _old_style(partition, query, limit, now_ms)
    log = partition.log
    if timestamp == LATEST:
        if absent != ErrorCode.NONE:
            return FoundOffset(absent)
        return FoundOffset(
            offset=log.end_offset if limit is None else limit, leader_epoch=partition.leader_epoch
        )
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(offset=log.start_offset, leader_epoch=_epoch_at_start(partition))
    return FoundOffset()


def _end_error(partition: Partition, version: int) -> ErrorCode:
    """Why the end of the log cannot be told yet, if so."""
    leadership = partition.leadership
    if leadership is None or partition.log.high_watermark >= leadership.epoch_start:
        return ErrorCode.NONE
    return ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE


def _epoch_at_start(partition: Partition) -> int:
    """The epoch of the first readable record, if the epoch cache reaches back so far."""
    log = partition.log
    if log.end_offset == log.start_offset:
        return partition.leader_epoch
    return log.leader_epochs.epoch_at(log.start_offset)


def _old_style(partition: Partition, query: OffsetQuery, limit: int | None, now_ms: int) -> FoundOffset:
    """v0: segment starts, newest first. What lies beyond the limit is replaced by the limit itself."""
    offsets = partition.log.segment_start_offsets_before(query.timestamp, query.max_offsets, now_ms)
    if limit is not None and any(offset > limit for offset in offsets):
        offsets = [limit, *dropwhile(lambda offset: offset > limit, offsets)]
    return FoundOffset(old_style=offsets)
