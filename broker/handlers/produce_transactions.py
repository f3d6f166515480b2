"""Batches of transactions in a Produce request: before the first one of a transaction is appended to a
partition, the coordinator is asked whether the partition belongs to it (KIP-890).

From version 12 on the question adds the partition; before, clients have done that by themselves. While a
transaction is open on the partition nobody is asked. The guard that is taken before the question is handed to
the log with the batch: where the transaction has ended meanwhile the batch is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ErrorCode
from protocol.records.batch import HEADER_SIZE
from storage.transactions import start_verification

if TYPE_CHECKING:
    from broker.context import BrokerContext
    from broker.handlers.produce_request import Entry
    from coordinator.transaction.state import TopicPartition

ADDS_FROM: Final = 12
ABORTABLE_FROM: Final = 11
TWO_PRODUCERS: Final = "Transactional records contained more than one producer ID"
NOT_ADDED: Final = "Partition was not added to the transaction"
UNVERIFIED: Final = "Unable to verify the partition has been added to the transaction. Underlying error: %s"

_PRODUCER: Final = Struct(">qhi")  # id, epoch, base sequence
_PRODUCER_AT: Final = 43
_COME_AGAIN: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    # a partition that is led here exists: the coordinator has not heard of it yet
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)


class _Producer(NamedTuple):
    producer_id: int
    epoch: int
    sequence: int


def admit(
    context: BrokerContext,
    transactional_id: str,
    version: int,
    entries: Sequence[Entry],
    done: Callable[[list[Entry]], None],
) -> None:
    """Have `done` called with those of the entries that may be appended, perhaps at once.

    The others have their errors. Entries that are of no transaction pass.
    """
    producers = [_producer_of(entry) if entry.transactional else None for entry in entries]
    if len({(each.producer_id, each.epoch) for each in producers if each is not None}) > 1:
        for entry in entries:
            entry.refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING, TWO_PRODUCERS)
        done([])
        return
    add = version >= ADDS_FROM
    asked: dict[TopicPartition, Entry] = {}
    now_ms = context.env.clock.now_ms()
    for entry, producer in zip(entries, producers, strict=True):
        if producer is not None and (add or context.logs.producer_settings.verify):
            replica = entry.replica
            entry.guard = start_verification(
                replica.log, producer.producer_id, producer.sequence, producer.epoch, add, now_ms
            )
            if entry.guard is not None:
                asked[replica.topic, replica.index] = entry
    if not asked:
        done(list(entries))
        return
    first = next(each for each in producers if each is not None)

    def answered(errors: dict[TopicPartition, ErrorCode]) -> None:
        for cell, error in errors.items():
            if error is not ErrorCode.NONE:
                asked[cell].refuse(*told(error, add=add, abortable=version >= ABORTABLE_FROM))
        done([entry for entry in entries if not entry.answer.error_code])

    from broker.transaction.verifier import Question  # the coordinator is imported with the first question
    from coordinator.transaction.transitions import Known

    known = Known(first.producer_id, first.epoch)
    context.transactions.verifier.ask(Question(transactional_id, known, list(asked), add), answered)


def told(error: ErrorCode, *, add: bool, abortable: bool) -> tuple[ErrorCode, str]:
    """What a producer hears. `abortable`: its version knows TRANSACTION_ABORTABLE."""
    if error is ErrorCode.PRODUCER_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    elif error is ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        error = ErrorCode.INVALID_TXN_STATE
    if error is ErrorCode.INVALID_TXN_STATE:
        return error, NOT_ADDED
    if error in _COME_AGAIN or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not add):
        return ErrorCode.NOT_ENOUGH_REPLICAS, UNVERIFIED % error.name
    return error, error.message


def _producer_of(entry: Entry) -> _Producer | None:
    """None for what is too short to be a batch; the check finds that."""
    if len(entry.records) < HEADER_SIZE:
        return None
    return _Producer(*_PRODUCER.unpack_from(entry.records, _PRODUCER_AT))
