"""Cutting a log: at its start (DeleteRecords, retention), at its end (a follower that diverged), or wholly.

What is cut off at the end is synced, and the recovery point lowered on disk before: records that are gone
must not come back beside their successors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from storage import append, recovery
from storage.errors import OffsetOutOfRange, StorageError
from storage.producers.state import ProducerState

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog


def delete_records(log: PartitionLog, offset: int) -> int:
    """See `PartitionLog.delete_records`."""
    log.check_online()
    if log.config.compacted and not log.config.deletes:
        raise StorageError(
            ErrorCode.POLICY_VIOLATION,
            f"records of {log.name} cannot be deleted: cleanup.policy does not contain delete",
        )
    if offset == -1:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise OffsetOutOfRange(
            f"cannot move the start of {log.name} to {offset}: the high watermark is {log.high_watermark}"
        )
    move_start(log, offset)
    return log.start_offset


def move_start(log: PartitionLog, offset: int) -> None:
    """Raise the start offset; files go when retention runs. Raises StorageFailed."""
    if offset > log.start_offset:
        log.start_offset = offset
        log.directory.starts_moved = True
        try:
            log.leader_epochs.truncate_from_start(offset)
        except OSError as error:
            append.fail(log, error, "deletion of records")


def truncate_to(log: PartitionLog, offset: int, now_ms: int) -> bool:
    """See `PartitionLog.truncate_to`."""
    log.check_online()
    try:
        if offset >= log.end_offset:
            log.leader_epochs.truncate_from_end(log.end_offset)
            return False
        if offset < log.local.segments.first.base_offset:
            truncate_fully(log, offset, now_ms)
        else:
            _lower_recovery_point(log, offset)
            log.local.truncate_to(offset, now_ms)
            log.leader_epochs.truncate_from_end(offset)
            log.opened(min(log.start_offset, offset), offset)
            log.directory.clean_offsets.lower((log.topic, log.partition), log.active.base_offset)
            log.adopt_producers(recovery.load_producers(log.local, offset, log.directory.producer_settings))
    except OSError as error:
        append.fail(log, error, "truncation")
    return True


def truncate_fully(log: PartitionLog, offset: int, now_ms: int, start_offset: int | None = None) -> None:
    """See `PartitionLog.truncate_fully`."""
    log.check_online()
    try:
        _lower_recovery_point(log, offset)
        log.local.restart_at(offset, now_ms)
        log.leader_epochs.clear()
        producers = ProducerState(log.local.files, log.local.directory, log.directory.producer_settings)
        producers.clear(offset)
    except OSError as error:
        append.fail(log, error, "truncation")
    log.high_watermark = offset
    log.opened(offset if start_offset is None else start_offset, offset)
    log.directory.clean_offsets.forget((log.topic, log.partition))
    log.adopt_producers(producers)


def _lower_recovery_point(log: PartitionLog, offset: int) -> None:
    """On disk too, and before anything is cut: what is written next above `offset` was never synced."""
    if offset < log.local.recovery_point:
        log.local.recovery_point = offset
        log.directory.write_recovery_points()
