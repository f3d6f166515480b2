"""Appends: how staged batches reach the file, what a failed write undoes, and the follower's side.

A leader's batches are staged one by one (`PartitionLog.append_as_leader`) and written together, one system
call for each log and turn of the event loop. Only after that call returned do the indexes, the end offset and
the tail know of them. A write that fails is undone wholly: the file is cut back, offsets are given back,
producers and epochs are as before the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from protocol.errors import ErrorCode
from protocol.records.control import ABORT, COMMIT, read_end_marker
from runtime.files import Buffer
from storage import roll, scan, transactions
from storage.errors import AppendRefused, CorruptLog, StorageFailed, is_full
from storage.log_config import FOREVER
from storage.segment import UNKNOWN
from storage.tail import BATCH_BYTES_MAX

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog
    from storage.producers.state import ProducerState


NOT_HELD = FOREVER  # `hold_from` of a log of which nothing waits for a sync


class Appended(NamedTuple):
    """Offsets of an accepted batch. `duplicate`: it is in the log already, these are the offsets it has
    there.

    `log_append_time_ms` is -1 under CreateTime (for a duplicate: the timestamp of the batch, as Kafka has
    it).
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    duplicate: bool


class UnexpectedAppendOffset(AppendRefused):
    """A follower was sent batches that do not continue its log."""

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


def write_staged(log: PartitionLog) -> None:
    """Write what is staged; see `PartitionLog.write_pending`."""
    staged = log.staged
    segment = log.active
    try:
        log.handle.append([part for part, _, _, _ in staged])
    except OSError as error:
        undo_staged(log)
        fail(log, error, "write")
    position, indexed = segment.size, segment.last_indexed_position
    interval = log.config.index_interval_bytes
    greatest, tail = segment.max_timestamp, log.tail
    for part, size, last_offset, timestamp in staged:
        if timestamp > greatest:
            greatest = timestamp
            segment.raise_max_timestamp(timestamp, last_offset)
        if position - indexed > interval:
            add_entry(log, last_offset, position)
            indexed = position
        position += size
        tail.add(part, size, last_offset + 1)
    segment.size = position
    staged.clear()
    before = log.end_offset
    log.end_offset = log.next_offset
    if log.has_producers:
        aborted = log.producers.commit(log.next_offset)
        if aborted is not None:
            transactions.written(log, aborted)
    if log.end_offset - log.local.recovery_point >= log.config.flush_messages:
        if log.sync_later:
            log.hold_from = min(log.hold_from, before)
        else:
            log.flush()


def add_entry(log: PartitionLog, last_offset: int, position: int) -> None:
    """Index a batch of the active segment that is in the file."""
    segment = log.active
    try:
        segment.add_index_entry(last_offset, position, segment.max_timestamp, segment.max_timestamp_offset)
    except OSError as error:
        # On a full disk the entries stay in memory and are written at the next lump, flush or roll.
        if not is_full(error):
            log.directory.fail(error)
        segment.last_indexed_position = position
    if segment.indexes_full(log.config.segment_index_bytes):
        roll.before_next(log)


def undo_staged(log: PartitionLog) -> None:
    """Forget what was staged; nothing of it is in the file any more, or the directory goes offline."""
    segment = log.active
    log.staged.clear()
    log.next_offset = log.end_offset
    log.position = segment.size
    log.failures += 1
    if segment.size == 0:
        segment.first_timestamp = UNKNOWN
        roll.plan(log)
    if log.has_producers:
        log.producers.rollback()
    try:
        if segment.handle.size() > segment.size:
            segment.handle.truncate(segment.size)
    except OSError as error:
        log.directory.fail(error)
    change_epochs(log, log.leader_epochs.clip)


def change_epochs(log: PartitionLog, change: Callable[[int], None]) -> None:
    """Let the epochs follow the end of the log after a failed append; the file may wait for room."""
    log.epoch = -1
    try:
        change(log.end_offset)
    except OSError as error:
        if not is_full(error):
            log.directory.fail(error)


def fail(log: PartitionLog, error: OSError, doing: str) -> NoReturn:
    """Turn a system error into StorageFailed; anything but a full disk takes the directory offline."""
    full = is_full(error) and not log.directory.offline
    if not full:
        log.directory.fail(error)
    what = "there is no room" if full else "the log directory is offline"
    raise StorageFailed(f"{doing} of {log.name} failed: {error}; {what}", offline=not full) from error


class FollowerBatch(NamedTuple):
    """A batch of a follower append and where it lies in the buffer."""

    at: int
    facts: scan.BatchFacts


def analyse(view: memoryview) -> list[FollowerBatch]:
    """The whole batches in a fetched buffer, CRCs checked. Raises AppendRefused (CORRUPT_MESSAGE)."""
    found: list[FollowerBatch] = []
    at, end = 0, len(view)
    try:
        while end - at > scan.PREFIX_BYTES:
            size = int.from_bytes(view[at + 8 : at + 12], "big", signed=True) + 12
            if size > end - at:
                break
            facts = scan.facts_at(view, at, at)
            scan.check_crc(view[at : at + size], facts)
            found.append(FollowerBatch(at, facts))
            at += size
    except CorruptLog as error:
        raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"batch at byte {at}: {error}") from error
    return found


def check_follower_order(log: PartitionLog, found: list[FollowerBatch]) -> None:
    """Last offsets must rise and the first batch must not lie below the end of the log."""
    previous = -1
    for _, facts in found:
        if facts.last_offset <= previous or facts.last_offset < facts.base_offset:
            raise AppendRefused(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"Out of order offsets found in append to {log.name}"
            )
        previous = facts.last_offset
    first = found[0].facts
    if first.base_offset < log.next_offset and first.magic == 2:
        raise UnexpectedAppendOffset(
            f"Unexpected offset in append to {log.name}. First offset {first.base_offset} is less than the "
            f"next offset {log.next_offset}",
            first.base_offset,
            previous,
        )


def append_fetched(log: PartitionLog, view: memoryview, now_ms: int) -> int:
    """The follower's append; see `PartitionLog.append_as_follower`."""
    log.check_online()
    return append_analysed(log, view, analyse(view), now_ms)


def append_analysed(log: PartitionLog, view: memoryview, found: list[FollowerBatch], now_ms: int) -> int:
    """The same where `analyse` was done before, on any thread."""
    log.check_online()
    if not found:
        return log.end_offset
    check_follower_order(log, found)
    try:
        stage_fetched(log, view, found, now_ms)
        log.write_pending()
    except StorageFailed:  # epochs of batches that are not here begin where these do, once they come again
        change_epochs(log, log.leader_epochs.truncate_from_end)
        raise
    return log.end_offset


def stage_fetched(log: PartitionLog, view: memoryview, found: list[FollowerBatch], now_ms: int) -> None:
    """Stage batches as they are, and let epochs and producers follow them."""
    producers = log.producers
    for at, facts in found:
        size, last, timestamp = facts.size, facts.last_offset, facts.max_timestamp
        if facts.leader_epoch >= 0 and facts.leader_epoch != log.epoch:
            try:
                log.leader_epochs.assign(facts.leader_epoch, facts.base_offset)
            except OSError as error:
                log.write_pending()
                fail(log, error, "epoch assignment")
            log.epoch = facts.leader_epoch
        log.next_offset = max(log.next_offset, facts.base_offset)
        log.make_room(size, timestamp, last, now_ms)
        if log.position == 0:
            log.start_segment(timestamp, now_ms)
        batch: Buffer = view[at : at + size]
        if size <= BATCH_BYTES_MAX:  # the tail keeps it
            batch = bytes(batch)
        log.staged.append((batch, size, last, timestamp))
        log.position += size
        log.next_offset = last + 1
        if facts.producer_id >= 0:
            producers.remember(facts.producer_id)
            replay_batch(producers, facts, batch)


def replay_batch(producers: ProducerState, facts: scan.BatchFacts, batch: Buffer) -> None:
    """Let the producers' state follow a batch that is in the log."""
    if facts.producer_id < 0:
        return
    if facts.control:
        marker = read_end_marker(batch)
        if marker is not None and marker.type in (ABORT, COMMIT):
            producers.replay_marker(
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                facts.last_offset,
                marker.timestamp,
                marker.type == COMMIT,
            )
        return
    producers.replay(
        facts.producer_id,
        facts.producer_epoch,
        facts.base_sequence,
        facts.last_offset,
        facts.last_offset - facts.base_offset,
        facts.max_timestamp,
        facts.transactional,
    )
