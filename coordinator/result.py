"""What an operation of a coordinator hands back: records to append, and the response that waits for them.

Also here: the error that ends an operation early, and how failures of the log are told to clients
(Kafka 4's group coordinator; the transaction coordinator has the same table).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from protocol.errors import ErrorCode
from protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

R = TypeVar("R")

_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class CoordinatorError(Exception):
    """An operation that is refused with an error code; state is as it was before."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.message)
        self.error = error


class CoordinatorRecord(NamedTuple):
    """One record of an internal topic; no value is a tombstone."""

    key: bytes
    value: bytes | None


class Producer(NamedTuple):
    """In whose transaction records are written."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


NO_PRODUCER = Producer()


@dataclass(slots=True)
class Result(Generic[R]):
    """Records are appended as one batch, all or nothing; `response` leaves when they are committed.

    With `replay` the records are applied to the shard's state as they are appended. Without, the operation
    has changed a state machine that answers for itself: it is told whether the records were committed.
    `undo` takes back what the operation itself has changed, when the records turn out not to be in the log
    (which a time-out does not mean). `guard` is the log's, for the first records of a transaction.
    """

    records: list[CoordinatorRecord]
    response: R
    replay: bool = True
    producer: Producer = field(default=NO_PRODUCER)
    undo: Callable[[], None] | None = None
    guard: object | None = None


def append_error(error: ErrorCode) -> ErrorCode:
    """What a client hears when records could not be appended; codes of coordinators stay as they are."""
    return _APPEND_ERRORS.get(error, error)
