"""The rules of transactions, as functions from what is known of a transactional id to what comes next.

Each returns the next `Transaction`, or the error that the request is refused with (of new request versions;
handlers translate for old ones). None of them looks at whether a change is on its way to the log, which is
the shard's to know: a request meets CONCURRENT_TRANSACTIONS then, before anything here is asked.

A change of producer id takes a fresh id, which has to be fetched first. Where one is needed and none was
given, the answer is `Need.ID`, and the request is asked again with an id.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from coordinator.transaction.state import (
    AT_REST,
    LAST_EPOCH,
    NO_EPOCH,
    NO_ID,
    NO_TIME,
    PREPARED,
    TopicPartition,
    Transaction,
    TxnState,
)
from protocol.errors import ErrorCode

OWN_EPOCHS: Final = 2
"""From this version on each transaction has an epoch of its own (KIP-890, part 2)."""


class Need(Enum):
    """What has to happen before a request can be decided."""

    ID = "a fresh producer id"
    ABORT = "the end of the open transaction"


Next: TypeAlias = Transaction | ErrorCode
NextOrNeed: TypeAlias = Transaction | ErrorCode | Need


class Known(NamedTuple):
    """The producer id and epoch that a client says it has."""

    producer_id: int
    epoch: int


def init_producer(
    txn: Transaction, known: Known | None, timeout_ms: int, fresh_id: int | None, now_ms: int
) -> NextOrNeed:
    """InitProducerId of an id that is there: state Empty under the next epoch.

    An open transaction has to be aborted first: see `fenced`. A client that names the epoch it had before
    its last one repeats a request whose answer it did not get, and gets the same again.
    """
    if txn.epoch != NO_EPOCH and known is not None and known.producer_id != txn.producer_id:
        rotated = known.producer_id == txn.previous_id and known.epoch >= LAST_EPOCH - 1
        if not rotated:
            return ErrorCode.PRODUCER_FENCED
    if txn.state is TxnState.ONGOING:
        return Need.ABORT
    if txn.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if txn.is_exhausted and (known is None or known.epoch == txn.epoch):
        if fresh_id is None:
            return Need.ID
        last_epoch = NO_EPOCH if known is None else txn.epoch
        return _renewed(txn, fresh_id, 0, last_epoch, timeout_ms, now_ms, previous_id=txn.producer_id)
    if known is None:
        return _renewed(txn, txn.producer_id, txn.epoch + 1, NO_EPOCH, timeout_ms, now_ms)
    if txn.epoch == NO_EPOCH or known.epoch == txn.epoch:
        return _renewed(txn, txn.producer_id, txn.epoch + 1, txn.epoch, timeout_ms, now_ms)
    if known.epoch == txn.last_epoch:
        return _renewed(txn, txn.producer_id, txn.epoch, txn.last_epoch, timeout_ms, now_ms)
    return ErrorCode.PRODUCER_FENCED


def _renewed(
    txn: Transaction,
    producer_id: int,
    epoch: int,
    last_epoch: int,
    timeout_ms: int,
    now_ms: int,
    previous_id: int | None = None,
) -> Transaction:
    return txn.moved(
        TxnState.EMPTY,
        now_ms,
        producer_id=producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_ms=NO_TIME,
        previous_id=txn.previous_id if previous_id is None else previous_id,
        next_id=NO_ID,
    )


def add_partitions(
    txn: Transaction, known: Known, partitions: Collection[TopicPartition], version: int, now_ms: int
) -> Next:
    """AddPartitionsToTxn and AddOffsetsToTxn. The very same value where all are in the transaction.

    Nobody was given the last epoch: who names it is refused, here and by `end_with_epoch`, or the transaction
    could not be fenced any more.
    """
    if known.producer_id != txn.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.epoch != txn.epoch or known.epoch == LAST_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    if txn.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if txn.state is TxnState.ONGOING and txn.partitions.issuperset(partitions):
        return txn
    return txn.moved(
        TxnState.ONGOING,
        now_ms,
        partitions=txn.partitions.union(partitions),
        start_ms=txn.start_ms if txn.state is TxnState.ONGOING else now_ms,
        version=version,
    )


def verify(txn: Transaction, known: Known, partition: TopicPartition) -> ErrorCode:
    """Whether a partition belongs to the open transaction of this producer."""
    if known.producer_id != txn.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.epoch != txn.epoch:
        return ErrorCode.PRODUCER_FENCED
    if txn.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE if partition in txn.partitions else ErrorCode.TRANSACTION_ABORTABLE


def fenced(txn: Transaction, version: int, now_ms: int) -> Transaction:
    """The abort of an open transaction by the coordinator: its producer may write no more to it.

    The epoch rises. Where the feature transaction.version is at 2 the abort is for the producer as one of
    its own whose answer was lost: EndTxn and InitProducerId under the epoch before tell it the next one. With
    an older version, and where no epoch is left, its end is never told to it. Where the record does not get
    into the log the state goes back, so the epoch rises once however often the abort has to be written.
    """
    goes_on = version >= OWN_EPOCHS and not txn.is_exhausted
    return txn.moved(
        TxnState.PREPARE_ABORT,
        now_ms,
        epoch=min(txn.epoch + 1, LAST_EPOCH),  # it is the last one in records that no coordinator wrote
        last_epoch=txn.epoch if goes_on else NO_EPOCH,
        version=version,
    )


def end_plain(txn: Transaction, known: Known, commit: bool, now_ms: int) -> Next:
    """EndTxn up to version 4: the epoch stays. The very same value where it has been done already."""
    if known.producer_id != txn.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if known.epoch != txn.epoch:
        return ErrorCode.PRODUCER_FENCED
    if txn.state is TxnState.ONGOING:
        return txn.moved(TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT, now_ms)
    return _ended_before(txn, commit)


def _ended_before(txn: Transaction, commit: bool) -> Next:
    """Who asks for what is decided hears so; who asks for the contrary has lost count."""
    if txn.state is (TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if txn.state is (TxnState.COMPLETE_COMMIT if commit else TxnState.COMPLETE_ABORT):
        return txn
    return ErrorCode.INVALID_TXN_STATE


def end_with_epoch(
    txn: Transaction, known: Known, commit: bool, version: int, fresh_id: int | None, now_ms: int
) -> NextOrNeed:
    """EndTxn from version 5 on: the epoch rises, and a request that is repeated names the one before.

    A transaction without partitions may be aborted, which raises the epoch as well.
    """
    rotated = txn.previous_id == known.producer_id and known.epoch == LAST_EPOCH - 1 and txn.epoch == 0
    used_up = txn.epoch == LAST_EPOCH and txn.next_id == NO_ID  # the coordinator ended it: see `fenced`
    repeated = rotated or (txn.epoch == known.epoch + 1 and not used_up)
    if known.producer_id != txn.producer_id and not rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not _may_end(txn, known, repeated) or known.epoch == LAST_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    if repeated:
        return _ended_before(txn, commit)
    if commit and txn.state is not TxnState.ONGOING:
        return ErrorCode.INVALID_TXN_STATE
    next_id = NO_ID
    if txn.is_exhausted:
        if fresh_id is None:
            return Need.ID
        next_id = fresh_id
    return txn.moved(
        TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT,
        now_ms,
        epoch=txn.epoch + 1,
        last_epoch=txn.epoch,
        next_id=next_id,
        start_ms=txn.start_ms if txn.state is TxnState.ONGOING else now_ms,
        version=version,
    )


def _may_end(txn: Transaction, known: Known, repeated: bool) -> bool:
    """The end that is on its way has raised the epoch; at rest both may come."""
    if txn.state in (TxnState.ONGOING, TxnState.EMPTY):
        return known.epoch == txn.epoch
    if txn.state in PREPARED:
        return repeated
    return repeated or known.epoch == txn.epoch


def completed(txn: Transaction, now_ms: int) -> Transaction:
    """All markers are written."""
    done = TxnState.COMPLETE_COMMIT if txn.state is TxnState.PREPARE_COMMIT else TxnState.COMPLETE_ABORT
    txn = txn.moved(done, now_ms, partitions=frozenset())
    if txn.next_id == NO_ID:
        return txn
    return replace(txn, producer_id=txn.next_id, epoch=0, previous_id=txn.producer_id, next_id=NO_ID)


def is_timed_out(txn: Transaction, now_ms: int) -> bool:
    """Whether an open transaction has lasted longer than its producer allowed."""
    return txn.state is TxnState.ONGOING and txn.start_ms + txn.timeout_ms < now_ms


def is_expired(txn: Transaction, now_ms: int, expiration_ms: int) -> bool:
    """Whether the id was at rest for so long that it is forgotten."""
    return txn.state in AT_REST and txn.update_ms + expiration_ms <= now_ms
