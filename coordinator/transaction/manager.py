"""The transaction coordinator as request handlers see it: one call for each request about a transactional id.

`done` gets an error, or NONE and the response, once, perhaps before the call returns. Errors are those of new
versions of requests; handlers translate for old ones.

A decision, once committed, is carried out whether or not its client still waits; the writes behind these
requests are therefore never answered before the log has decided about them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypeVar

from coordinator.result import CoordinatorError, Result
from coordinator.runtime import CoordinatorRuntime, State
from coordinator.transaction.shard import Endings, Producer, TransactionShard
from coordinator.transaction.state import TopicPartition, Transaction
from coordinator.transaction.transitions import Known, Need
from protocol.errors import ErrorCode
from runtime.pieces import Steps, split

_log = logging.getLogger(__name__)

UNDECIDED_MS: Final = (1 << 31) - 1
ENDED_AT_ONCE: Final = 50
"""Decisions in a piece: with its markers one takes up to half a millisecond."""

R = TypeVar("R")
Done = Callable[[ErrorCode, R | None], None]


class TransactionManager:
    """See the module; `runtime` is that of `__transaction_state`."""

    def __init__(self, runtime: CoordinatorRuntime[TransactionShard], endings: Endings) -> None:
        self.runtime = runtime
        self._endings = endings

    # --- requests -------------------------------------------------------------------------------------------

    def init_producer(
        self,
        transactional_id: str,
        known: Known | None,
        timeout_ms: int,
        fresh_id: int | None,
        done: Done[Producer | Need],
    ) -> None:
        """InitProducerId. `Need.ID`: ask again with an id. An open transaction is aborted first and the
        client told CONCURRENT_TRANSACTIONS until that is over.
        """

        def decided(error: ErrorCode, response: Producer | Need | None) -> None:
            if response is Need.ABORT:
                self._abort_for_next(transactional_id, done)
            else:
                done(error, response)

        self._write(
            transactional_id,
            lambda shard: shard.init_producer(transactional_id, known, timeout_ms, fresh_id),
            decided,
        )

    def _abort_for_next(self, transactional_id: str, done: Done[Producer | Need]) -> None:
        def fenced(error: ErrorCode, _: bool | None) -> None:
            done(error or ErrorCode.CONCURRENT_TRANSACTIONS, None)

        self.fence(transactional_id, fenced)

    def add_partitions(
        self,
        transactional_id: str,
        known: Known,
        partitions: Collection[TopicPartition],
        version: int,
        done: Done[None],
    ) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn: partitions of the open transaction, or of a new one."""
        self._write(
            transactional_id,
            lambda shard: shard.add_partitions(transactional_id, known, partitions, version),
            done,
        )

    def verify(
        self, transactional_id: str, known: Known, partitions: Collection[TopicPartition]
    ) -> list[ErrorCode]:
        """Whether each partition is in the open transaction. Raises CoordinatorError."""
        if not transactional_id:
            raise CoordinatorError(ErrorCode.INVALID_REQUEST)
        shard = self.runtime.shard(self.runtime.partition_for(transactional_id))
        return shard.verify(transactional_id, known, partitions)

    def end(
        self,
        transactional_id: str,
        known: Known,
        commit: bool,
        version: int,
        fresh_id: int | None,
        done: Done[Producer | Need],
    ) -> None:
        """EndTxn. The answer comes when the decision is committed; the markers follow."""
        self._decide(
            transactional_id,
            lambda shard: shard.end(transactional_id, known, commit, version, fresh_id),
            done,
        )

    def fence(self, transactional_id: str, done: Done[bool]) -> None:
        """Abort an open transaction so that its producer may write no more."""
        self._decide(transactional_id, lambda shard: shard.fence(transactional_id), done)

    def complete(self, partition: int, transactional_id: str, decided: Transaction, done: Done[bool]) -> None:
        """The markers of a decision are written."""
        self.runtime.write(
            partition, lambda shard: shard.complete(transactional_id, decided), done, UNDECIDED_MS
        )

    # --- looking --------------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> Transaction:
        """What is committed of an id. Raises CoordinatorError: 105 for one that is not known."""
        if not transactional_id:
            raise CoordinatorError(ErrorCode.INVALID_REQUEST)
        shard = self.runtime.shard(self.runtime.partition_for(transactional_id))
        txn = shard.get(transactional_id)
        if txn is None:
            raise CoordinatorError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return txn

    def partitions(self, transactional_id: str, txn: Transaction) -> Collection[TopicPartition]:
        """Those of an open transaction; of a decided one those that have no marker yet."""
        left = self._endings.left(self.runtime.partition_for(transactional_id), transactional_id)
        return txn.partitions if left is None else left

    def shards(self) -> list[TransactionShard]:
        """All that this broker looks after, to be gone through one after the other: there may be very many
        ids. Raises CoordinatorError.
        """
        return self.runtime.read_all(lambda shard: shard)

    # --- by the clock ---------------------------------------------------------------------------------------

    def abort_timed_out(self, partition: int) -> Steps[None]:
        """Abort the transactions of a partition that have been open for too long."""
        for some in self._in_pieces(partition):
            late = self.runtime.shard(partition).timed_out(some)
            for few in split(late, ENDED_AT_ONCE):
                for each in few:
                    self.fence(each, _told(f"{each!r} that takes too long was not aborted"))
                yield
            yield

    def forget_expired(self, partition: int) -> Steps[None]:
        """End the ids of a partition that nobody has used for transactional.id.expiration.ms."""
        for some in self._in_pieces(partition):
            self._forget(partition, some)
            yield

    def _in_pieces(self, partition: int) -> Iterator[Sequence[str]]:
        """The ids of a partition, as long as it is served here: there may be very many."""
        if self.runtime.state(partition) is not State.ACTIVE:
            return
        for some in split(self.runtime.shard(partition).ids()):
            if self.runtime.state(partition) is not State.ACTIVE:
                return
            yield some

    def _forget(self, partition: int, ids: Sequence[str]) -> None:
        told = _told("that expired was not forgotten")
        self.runtime.write(partition, lambda shard: shard.forget(ids), told)

    # --- writes ---------------------------------------------------------------------------------------------

    def _write(
        self, transactional_id: str, operation: Callable[[TransactionShard], Result[R]], done: Done[R]
    ) -> None:
        try:
            if not transactional_id:
                raise CoordinatorError(ErrorCode.INVALID_REQUEST)
            partition = self.runtime.partition_for(transactional_id)
        except CoordinatorError as refused:
            done(refused.error, None)
            return
        self.runtime.write(partition, operation, done, UNDECIDED_MS)

    def _decide(
        self, transactional_id: str, operation: Callable[[TransactionShard], Result[R]], done: Done[R]
    ) -> None:
        """A write that may be a decision: when it is committed, it is carried out."""
        wrote: list[bool] = []

        def watched(shard: TransactionShard) -> Result[R]:
            result = operation(shard)
            wrote.append(bool(result.records))
            return result

        def decided(error: ErrorCode, response: R | None) -> None:
            if error is ErrorCode.NONE and wrote[0]:
                partition = self.runtime.partition_for(transactional_id)
                txn = self.runtime.shard(partition).get(transactional_id)
                assert txn is not None, "an id that is pending is not forgotten"
                self._endings.decided(partition, transactional_id, txn)
            done(error, response)

        self._write(transactional_id, watched, decided)


def _told(what: str) -> Done[object]:
    """For work by the clock: the next turn tries again."""

    def done(error: ErrorCode, _: object) -> None:
        if error is not ErrorCode.NONE:
            _log.warning("Transactional id %s, the next check tries again: %s", what, error.message)

    return done
