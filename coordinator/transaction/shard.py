"""The transactional ids of one partition of `__transaction_state`.

State changes by records alone. While the record of a change is not committed the change is *pending*: every
request but the one that verifies partitions is told to come again (CONCURRENT_TRANSACTIONS), so the state
that operations look at is always committed. What the log does not keep of a change (`last_epoch`) travels
from the operation to the replay of its record beside it.

A change to PREPARE_COMMIT or PREPARE_ABORT is a decision. Once it is committed, `Endings` is told, which
writes the markers and comes back with `complete`; after a load the decisions that were found are told again,
some at a time: nobody but `Endings` can change what was decided, so those told late are as they were.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeVar

from coordinator.freeing import free
from coordinator.journal import JournaledTable
from coordinator.ports import Clock
from coordinator.result import CoordinatorError, Result
from coordinator.runtime import Context
from coordinator.transaction import records, transitions
from coordinator.transaction.state import (
    PREPARED,
    TopicPartition,
    Transaction,
    TxnState,
)
from coordinator.transaction.transitions import Known, Need
from protocol.errors import ErrorCode

R = TypeVar("R")

TOLD_AT_ONCE: Final = 50
"""Decisions found in the log that are told in one pass of the loop; each has its markers written at once."""

_ONLY: Final = ""  # each row of the table has this cell
_FOUND: Final = "decisions that were found"

_log = logging.getLogger(__name__)


class Producer(NamedTuple):
    """What a client goes on with."""

    producer_id: int
    epoch: int


class Endings(Protocol):
    """Who writes the markers of decided transactions."""

    def decided(self, partition: int, transactional_id: str, txn: Transaction) -> None:
        """The decision is committed on this partition of the topic."""

    def unloaded(self, partition: int) -> None:
        """The partition is looked after here no more: decisions that are being carried out are let go."""

    def left(self, partition: int, transactional_id: str) -> Collection[TopicPartition] | None:
        """What has no marker yet of a decision that is being carried out; None where there is none."""


@dataclass(slots=True)
class ShardSettings:
    """What all shards have in common. `version`: the level of the feature transaction.version now."""

    endings: Endings
    version: Callable[[], int]
    expiration_ms: int


class TransactionShard:
    """See the module."""

    def __init__(self, context: Context, clock: Clock, settings: ShardSettings) -> None:
        self._partition = context.partition
        self._clock = clock
        self._settings = settings
        self._journal, self._timers = context.journal, context.timers
        self._txns: JournaledTable[str, str, Transaction] = JournaledTable(context.journal)
        self._found: dict[str, None] = {}  # what a load finds decided
        self._coming: dict[str, Transaction] = {}  # of records that are being appended
        self._unknown: set[tuple[int, int]] = set()

    def __len__(self) -> int:
        return len(self._txns)

    # --- looking --------------------------------------------------------------------------------------------

    def get(self, transactional_id: str) -> Transaction | None:
        """What is committed of an id; None for one that is not known."""
        return self._txns.committed(transactional_id, _ONLY)

    def is_pending(self, transactional_id: str) -> bool:
        """Whether a change of it is on its way."""
        return self._txns.is_changing(transactional_id, _ONLY)

    def ids(self) -> list[str]:
        """Every id that is committed. There may be very many: go through them in pieces."""
        return self._txns.committed_outer_keys()

    def verify(
        self, transactional_id: str, known: Known, partitions: Collection[TopicPartition]
    ) -> list[ErrorCode]:
        """Which of the partitions are in the open transaction; a pending change does not matter.

        Raises CoordinatorError (49) for an id that is not known.
        """
        txn = self._existing(transactional_id)
        return [transitions.verify(txn, known, each) for each in partitions]

    # --- requests -------------------------------------------------------------------------------------------

    def init_producer(
        self, transactional_id: str, known: Known | None, timeout_ms: int, fresh_id: int | None
    ) -> Result[Producer | Need]:
        """InitProducerId; `Need.ABORT` where a transaction is open."""
        self._refuse_pending(transactional_id)
        now_ms = self._clock.now_ms()
        txn = self.get(transactional_id)
        if txn is None:
            if fresh_id is None:
                return Result([], Need.ID)
            known = None
            txn = Transaction(fresh_id)
        after = transitions.init_producer(txn, known, timeout_ms, fresh_id, now_ms)
        if isinstance(after, Need):
            return Result([], after)
        if isinstance(after, ErrorCode):
            raise CoordinatorError(after)
        return self._change(transactional_id, after, Producer(after.producer_id, after.epoch))

    def add_partitions(
        self, transactional_id: str, known: Known, partitions: Collection[TopicPartition], version: int
    ) -> Result[None]:
        """AddPartitionsToTxn, AddOffsetsToTxn."""
        txn = self._existing(transactional_id)
        self._refuse_pending(transactional_id)
        after = transitions.add_partitions(txn, known, partitions, version, self._clock.now_ms())
        if isinstance(after, ErrorCode):
            raise CoordinatorError(after)
        if after is txn:
            return Result([], None)
        return self._change(transactional_id, after, None)

    def end(
        self, transactional_id: str, known: Known, commit: bool, version: int, fresh_id: int | None
    ) -> Result[Producer | Need]:
        """EndTxn: the decision. The response names the producer of the next transaction."""
        txn = self._existing(transactional_id)
        self._refuse_pending(transactional_id)
        now_ms = self._clock.now_ms()
        if version >= transitions.OWN_EPOCHS:
            after = transitions.end_with_epoch(txn, known, commit, version, fresh_id, now_ms)
        else:
            after = transitions.end_plain(txn, known, commit, now_ms)
        if isinstance(after, Need):
            return Result([], after)
        if isinstance(after, ErrorCode):
            raise CoordinatorError(after)
        if after is txn:
            return Result([], Producer(txn.producer_id, txn.epoch))
        rotates = after.next_id >= 0
        following = Producer(after.next_id, 0) if rotates else Producer(after.producer_id, after.epoch)
        return self._change(transactional_id, after, following)

    def fence(self, transactional_id: str) -> Result[bool]:
        """Abort an open transaction for its producer's sake or against it; whether there was one."""
        txn = self.get(transactional_id)
        if txn is None or txn.state is not TxnState.ONGOING or self.is_pending(transactional_id):
            return Result([], False)
        after = transitions.fenced(txn, self._settings.version(), self._clock.now_ms())
        return self._change(transactional_id, after, True)

    def complete(self, transactional_id: str, decided: Transaction) -> Result[bool]:
        """The markers of a decision are written; False where it is not the one that stands any more."""
        txn = self.get(transactional_id)
        if txn != decided or txn.state not in PREPARED or self.is_pending(transactional_id):
            return Result([], False)
        return self._change(transactional_id, transitions.completed(txn, self._clock.now_ms()), True)

    # --- by the clock ---------------------------------------------------------------------------------------

    def timed_out(self, transactional_ids: Collection[str]) -> list[str]:
        """Those of the ids whose transaction has been open for too long, and waits for nothing."""
        now_ms = self._clock.now_ms()

        def is_late(transactional_id: str) -> bool:
            txn = self.get(transactional_id)
            if txn is None or self.is_pending(transactional_id):
                return False
            return transitions.is_timed_out(txn, now_ms)

        return [each for each in transactional_ids if is_late(each)]

    def forget(self, transactional_ids: Collection[str]) -> Result[None]:
        """End those of the ids that were at rest for so long that they are forgotten."""
        now_ms = self._clock.now_ms()

        def is_over(transactional_id: str) -> bool:
            txn = self.get(transactional_id)
            if txn is None or self.is_pending(transactional_id):
                return False
            return transitions.is_expired(txn, now_ms, self._settings.expiration_ms)

        return Result([records.tombstone(each) for each in transactional_ids if is_over(each)], None)

    # --- records --------------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """Apply a record. Raises MalformedMessage."""
        kind = records.leading(key)
        if kind != records.KEY_TYPE:
            self._pass_over(kind, -1)
            return
        transactional_id = records.read_key(key)
        if value is None:
            self._found.pop(transactional_id, None)
            self._txns.remove(transactional_id, _ONLY)
            return
        txn = self._coming.pop(transactional_id, None) or records.read_value(value)
        if txn is None:
            self._pass_over(kind, records.leading(value))
            return
        self._txns.put(transactional_id, _ONLY, txn)
        if not self._journal.recording:
            self._note_loaded(transactional_id, txn)

    def _note_loaded(self, transactional_id: str, txn: Transaction) -> None:
        if txn.state in PREPARED:
            self._found[transactional_id] = None
        elif self._found:
            self._found.pop(transactional_id, None)

    def replay_end_marker(self, producer_id: int, commit: bool) -> None:
        """Nothing here is written in transactions."""

    def on_loaded(self, now_ms: int) -> None:
        """What was decided has to be carried out."""
        self._carry_out_found()

    def _carry_out_found(self) -> None:
        for transactional_id in list(islice(self._found, TOLD_AT_ONCE)):
            del self._found[transactional_id]
            self._settings.endings.decided(
                self._partition, transactional_id, self._existing(transactional_id)
            )
        if self._found:
            self._timers.set(_FOUND, 0, self._carry_out_found)

    def on_unloaded(self) -> None:
        """Forget everything; somebody else carries out what was decided."""
        free(self._txns.take(), self._timers)
        self._coming.clear()
        self._found.clear()
        self._settings.endings.unloaded(self._partition)

    def _change(self, transactional_id: str, after: Transaction, response: R) -> Result[R]:
        def undo() -> None:
            self._coming.pop(transactional_id, None)

        self._coming[transactional_id] = after
        value_version = records.FLEXIBLE if self._settings.version() > 0 else records.PLAIN
        record = records.state_record(transactional_id, after, value_version)
        return Result([record], response, undo=undo)

    def _existing(self, transactional_id: str) -> Transaction:
        txn = self.get(transactional_id)
        if txn is None:
            raise CoordinatorError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return txn

    def _refuse_pending(self, transactional_id: str) -> None:
        if self.is_pending(transactional_id):
            raise CoordinatorError(ErrorCode.CONCURRENT_TRANSACTIONS)

    def _pass_over(self, kind: int, version: int) -> None:
        if (kind, version) not in self._unknown:
            self._unknown.add((kind, version))
            _log.warning(
                "Records of __transaction_state of type %d with value version %d are not known to this "
                "broker; they have no effect", kind, version,
            )  # fmt: skip
