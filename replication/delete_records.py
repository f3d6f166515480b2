"""DeleteRecords: raise the first readable offset of partitions (KIP-107).

The new start is persisted before the answer (a start offset that comes back after a crash would bring deleted
records back); files go with the next retention run. The answer is the low watermark, the least start offset
of all live replicas: with a single replica it is there at once, else see `replication.delayed_delete`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from protocol.errors import ErrorCode
from replication import topic_names
from replication.partition import Partition
from runtime.pieces import Steps, split
from storage.errors import StorageError

MOVED_AT_ONCE: Final = 50
"""Each may write the file of leader epochs anew, which takes up to 300 us."""

Find = Callable[[str, int], Partition | ErrorCode]


@dataclass(slots=True)
class DeletedRecords:
    """What became of one partition; `low_watermark` is -1 on error. All replicas' starts have to reach
    `offset`.
    """

    topic: str
    index: int
    error: ErrorCode = ErrorCode.NONE
    low_watermark: int = -1
    offset: int = -1
    partition: Partition | None = None


def delete_records(
    wanted: Sequence[tuple[str, int, int]], find: Find, persist: Callable[[], None]
) -> Steps[list[DeletedRecords]]:
    """`wanted` are (topic, partition, offset), -1 meaning the high watermark; one result for each, in order.
    In pieces: a new start may be seen before it is persisted, which it is before it is told.

    `persist` writes the start offsets that moved (LogManager.persist_log_starts). Errors: 17 internal topic,
    3, 6, 56 (also where the new start could not be written), 1 below zero or beyond the high watermark, 44
    the cleanup policy does not delete.
    """
    results: list[DeletedRecords] = []
    moved: list[tuple[DeletedRecords, Partition]] = []
    for some in split(wanted, MOVED_AT_ONCE):
        for topic, index, offset in some:
            result = DeletedRecords(topic, index)
            results.append(result)
            partition = _delete(result, offset, find)
            if partition is not None:
                result.partition = partition
                moved.append((result, partition))
        yield
    if moved:
        persist()
    for result, partition in moved:
        directory = partition.log.directory
        if directory.offline or directory.starts_moved:
            result.error, result.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, -1
    return results


def _delete(result: DeletedRecords, offset: int, find: Find) -> Partition | None:
    """Move the start of one partition; the partition if that went well."""
    if topic_names.is_internal(result.topic):
        result.error = ErrorCode.INVALID_TOPIC_EXCEPTION
        return None
    partition = find(result.topic, result.index)
    if not isinstance(partition, Partition):
        result.error = partition
        return None
    result.error = partition.check(-1)
    if result.error == ErrorCode.NONE:
        try:
            start = result.low_watermark = partition.delete_records(offset)
            result.offset = start if offset == -1 else offset
        except StorageError as refused:
            result.error = refused.error
    return partition if result.error == ErrorCode.NONE else None
