"""DeleteRecords: raise the first readable offset of partitions (KIP-107).

The new start is persisted before the answer (a start offset that comes back after a crash would bring deleted
records back); files go with the next retention run. The answer is the low watermark, the least start offset
of all live replicas: with a single replica it is there at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from protocol.errors import ErrorCode
from replication import topic_names
from replication.partition import Partition
from storage.errors import StorageError

Find = Callable[[str, int], Partition | ErrorCode]


@dataclass(slots=True)
class DeletedRecords:
    """What became of one partition; `low_watermark` is -1 on error."""

    topic: str
    index: int
    error: ErrorCode = ErrorCode.NONE
    low_watermark: int = -1


def delete_records(
    wanted: Sequence[tuple[str, int, int]], find: Find, persist: Callable[[], None]
) -> list[DeletedRecords]:
    """`wanted` are (topic, partition, offset), -1 meaning the high watermark; one result for each, in order.

    `persist` writes the start offsets that moved (LogManager.persist_log_starts). Errors: 17 internal topic,
    3, 6, 56, 1 below zero or beyond the high watermark, 44 the cleanup policy does not delete."""
    results = [_delete(topic, index, offset, find) for topic, index, offset in wanted]
    if any(result.error == ErrorCode.NONE for result in results):
        persist()
    return results


def _delete(topic: str, index: int, offset: int, find: Find) -> DeletedRecords:
    result = DeletedRecords(topic, index)
    if topic_names.is_internal(topic):
        result.error = ErrorCode.INVALID_TOPIC_EXCEPTION
        return result
    partition = find(topic, index)
    if not isinstance(partition, Partition):
        result.error = partition
        return result
    result.error = partition.check(-1)
    if result.error == ErrorCode.NONE:
        try:
            result.low_watermark = partition.delete_records(offset)
        except StorageError as refused:
            result.error = refused.error
    return result
