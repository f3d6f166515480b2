"""ListOffsets for one partition: an offset by time, or by one of the special timestamps.

-1 latest, -2 earliest, and from later versions on -3 the record with the greatest timestamp (v7), -4 the
earliest kept locally (v8), -5 the latest that was tiered (v9) and -6 the earliest that waits for tiering
(v11); there is no tiered storage here, so that -4 is the start of the log and -5 and -6 find nothing. Other
negative values are refused with 35.

Nothing found is no error: offset and timestamp are -1. A record at or beyond the isolation limit is not
found."""

from __future__ import annotations

from dataclasses import dataclass, field

from protocol.errors import ErrorCode
from replication.partition import Partition
from storage.errors import CorruptLog, StorageError

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)

SINCE_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}

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


def find_offset(
    partition: Partition, query: OffsetQuery, *, version: int, isolation: int = 0, replica_id: int = -1
) -> FoundOffset:
    """Answer one query. May read a batch from the disk; raises nothing."""
    if query.timestamp < 0 and version < SINCE_VERSION.get(query.timestamp, version + 1):
        return FoundOffset(ErrorCode.UNSUPPORTED_VERSION)
    error = partition.check(query.leader_epoch, leader_required=replica_id != DEBUGGING_REPLICA)
    if error != ErrorCode.NONE:
        return FoundOffset(error)
    consumer = replica_id < 0 and replica_id != DEBUGGING_REPLICA
    limit = partition.read_limit(isolation) if consumer else partition.log.end_offset
    try:
        if version == 0:
            return _old_style(partition, query, limit)
        return _find(partition, query.timestamp, limit)
    except StorageError as failed:
        return FoundOffset(failed.error)
    except CorruptLog:
        return FoundOffset(ErrorCode.CORRUPT_MESSAGE)


def _find(partition: Partition, timestamp: int, limit: int) -> FoundOffset:
    log = partition.log
    if timestamp == LATEST:
        return FoundOffset(offset=limit, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(offset=log.start_offset, leader_epoch=_epoch_at_start(partition))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return FoundOffset()
    if timestamp == MAX_TIMESTAMP:
        found = log.max_timestamp_offset(limit)
    else:
        found = log.offset_for_timestamp(timestamp, limit)
    if found is None:
        return FoundOffset()
    return FoundOffset(offset=found.offset, timestamp=found.timestamp, leader_epoch=found.leader_epoch)


def _epoch_at_start(partition: Partition) -> int:
    """The epoch of the first readable record, if the epoch cache reaches back so far."""
    log = partition.log
    if log.end_offset == log.start_offset:
        return partition.leader_epoch
    return log.leader_epochs.epoch_at(log.start_offset)


def _old_style(partition: Partition, query: OffsetQuery, limit: int) -> FoundOffset:
    """v0: segment starts. What lies beyond the limit is replaced by the limit itself."""
    offsets = partition.log.segment_start_offsets_before(query.timestamp, max(query.max_offsets, 0))
    if any(offset > limit for offset in offsets):
        offsets = [limit, *(offset for offset in offsets if offset < limit)][: query.max_offsets]
    return FoundOffset(old_style=offsets)
