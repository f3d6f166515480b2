"""Transactions as a log sees them: batches and markers that come, what readers may see, what was aborted.

The last stable offset is the high watermark, or the first offset of the earliest transaction that is not
decided for readers where that lies below it. It moves only with markers that are written (and, with more
replicas than one, replicated), never with what is merely staged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.control import ABORT, COMMIT, read_end_marker
from protocol.records.rules import Checked
from storage.errors import is_full
from storage.producers.snapshot import EMPTY_BYTES
from storage.producers.transactions import NONE_OPEN
from storage.txn_index import AbortedTxn

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog
    from storage.producers.entry import CachedBatch
    from storage.producers.verification import VerificationGuard
    from storage.read import LogSlice
    from storage.segment import Segment

NOT_KNOWN = -1  # first unstable offset of a log whose producers were not looked at
CONTROL_BIT = 0x20


def stage(
    log: PartitionLog,
    batch: Checked,
    last: int,
    check_order: bool,
    guard: VerificationGuard | None,
    transaction_version: int,
) -> CachedBatch | None:
    """Let the producers' state follow a transactional batch, or a marker, that is being staged."""
    if not batch.attributes & CONTROL_BIT:
        return log.producers.stage_transactional(
            batch.producer_id, batch.producer_epoch, batch.base_sequence, last, batch.last_offset_delta,
            batch.max_timestamp, check_order, guard,
        )  # fmt: skip
    marker = read_end_marker(batch.buf, batch.at)
    if marker is not None and marker.type in (ABORT, COMMIT):
        log.producers.stage_marker(
            marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, last, marker.timestamp,
            marker.type == COMMIT, transaction_version,
        )  # fmt: skip
    return None


def written(log: PartitionLog, aborted: list[AbortedTxn]) -> None:
    """Transactions began or ended with what was just written; index those that were aborted.

    Where the disk fails, the last stable offset stays: after a restart recovery makes the index whole.
    """
    index = log.active.txn_index if aborted else None
    for entry in aborted:
        assert index is not None
        try:
            index.append(entry)
        except OSError as error:
            if not is_full(error):
                log.directory.fail(error)
                return
    log.first_unstable = log.producers.transactions.first_unstable


def replicated(log: PartitionLog) -> None:
    """The high watermark moved: markers below it decide."""
    transactions = log.producers.transactions
    transactions.replicated(log.high_watermark)
    if log.first_unstable != NOT_KNOWN and not log.directory.offline:
        log.first_unstable = transactions.first_unstable


def look_up(log: PartitionLog) -> int:
    """Learn the first unstable offset of a log just opened."""
    if not log.has_producers and _has_no_producers(log):
        log.first_unstable = NONE_OPEN
    else:
        log.first_unstable = log.producers.transactions.first_unstable
    return log.first_unstable


def _has_no_producers(log: PartitionLog) -> bool:
    """Whether the log is empty, or closed with a snapshot of nobody: usually one look at a file tells."""
    path, files = log.snapshot_path(log.end_offset), log.local.files
    if not files.exists(path):
        return log.end_offset == log.local.segments.first.base_offset
    return files.size(path) == EMPTY_BYTES


def aborted(log: PartitionLog, offset: int, upper_offset: int) -> list[AbortedTxn]:
    """Aborted transactions with records or their marker in [offset, upper_offset); there may be some more."""
    segment = log.local.segments.floor(offset)
    return _collect(log, segment, offset, upper_offset) if segment is not None else []


def aborted_within(log: PartitionLog, offset: int, piece: LogSlice) -> list[AbortedTxn]:
    """`aborted` for what a read from `offset` on has returned."""
    segments = log.local.segments
    first = segments.floor(piece.segment_base)
    if not piece.length or first is None or not any(len(s.txn_index) for s in segments.since(first)):
        return []
    upper = first.offset_index.offset_from(piece.position + piece.length)
    if upper < 0:
        following = segments.after(first)
        upper = log.end_offset if following is None else following.base_offset
    return _collect(log, first, offset, upper)


def _collect(log: PartitionLog, first: Segment, offset: int, upper_offset: int) -> list[AbortedTxn]:
    """A transaction is indexed where its marker is, which may be in any later segment."""
    found: list[AbortedTxn] = []
    for segment in log.local.segments.since(first):
        index = segment.txn_index
        if len(index):
            some, complete = index.collect(offset, upper_offset)
            found += some
            if complete:
                break
    return found


def start_verification(
    log: PartitionLog, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
) -> VerificationGuard | None:
    """What to hold while the coordinator is asked whether the transaction may write here (KIP-890).

    None where its transaction is open already and nobody needs to be asked.
    """
    producers = log.producers
    if producers.has_ongoing_transaction(producer_id, epoch):
        return None
    return producers.verifications.begin(producer_id, sequence, epoch, supports_epoch_bump, now_ms)
