"""Appends of a coordinator to its internal topic, through the same turn of the loop as everybody's.

A batch is staged at once, which gives it its offset, and written with the turn. Then, once the high watermark
has passed it, its coordinator is told. With one in-sync replica that is in the turn's own flush, before the
turn's answers leave; else the partition wakes the queue of the undecided as it wakes parked fetches.

Invariants: the undecided of a partition stand in the order of their offsets, and are told in that order.
After a failed write nothing is staged until all whom it took along have been told, as their offsets are given
out anew.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from coordinator.ports import AppendRefused
from protocol.errors import ErrorCode
from replication.partition import ACKS_ALL
from storage.errors import StorageError

if TYPE_CHECKING:
    from protocol.records.rules import Checked
    from replication.partition import Partition
    from replication.produce import WriteTurn
    from replication.replica_manager import ReplicaManager
    from storage.producers.verification import VerificationGuard

_log = logging.getLogger(__name__)

Decided = Callable[[ErrorCode], None]
Batch = tuple[int, int, Decided]
"""One appended batch: its last offset, how many writes of its log had failed when it was staged, who is
told."""


class _Undecided:
    """The batches of one partition whose fate is open, oldest first. A Waiter of the partition.

    Those that are staged, and those that are written and wait for the high watermark.
    """

    __slots__ = ("_replica", "staged", "waiting")

    def __init__(self, replica: Partition) -> None:
        self._replica = replica
        self.staged: list[Batch] = []
        self.waiting: deque[Batch] = deque()

    def write_failed(self) -> bool:
        """Whether a write has failed of which the batches that it took along do not know yet."""
        return bool(self.staged) and self.staged[-1][1] != self._replica.log.failures

    def written(self) -> None:
        """The turn is over: tell those that are gone from the log, then those that are committed."""
        log = self._replica.log
        failures = log.failures
        staged, self.staged = self.staged, []
        if len(staged) == 1 and not self.waiting:
            [(last_offset, known_failures, _)] = staged
            if known_failures == failures and log.high_watermark > last_offset and self._replica.is_leader:
                self._tell(staged[0], ErrorCode.NONE)  # one batch and no follower, as nearly always
                return
        if staged and staged[0][1] == failures:  # no write has failed since the first of them
            self.waiting.extend(staged)
        else:
            self.waiting.extend(each for each in staged if each[1] == failures)
            for each in staged:
                if each[1] != failures:
                    self._tell(each, ErrorCode.KAFKA_STORAGE_ERROR)
        self.wake()

    def wake(self) -> None:
        """Tell those that are settled by now and wait for news of the others.

        A callback may append again: what it stages is not written yet, and stays.
        """
        replica, waiting = self._replica, self.waiting
        while waiting:
            if not replica.is_leader:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif replica.log.high_watermark > waiting[0][0]:
                error = ErrorCode.NONE
            else:
                replica.waiters[self] = None
                return
            self._tell(waiting.popleft(), error)

    def _tell(self, batch: Batch, error: ErrorCode) -> None:
        """A coordinator that fails here must not take the others' answers in this turn with it."""
        try:
            batch[2](error)
        except Exception:
            _log.exception("What waited for offset %d of %s failed", batch[0], self._replica)


class TopicWriter:
    """Implements `coordinator.ports.PartitionWriter` for one topic."""

    def __init__(self, topic: str, replicas: ReplicaManager, turn: WriteTurn) -> None:
        self._topic = topic
        self._replicas = replicas
        self._turn = turn
        self._undecided: dict[Partition, _Undecided] = {}
        self._staged: dict[_Undecided, None] = {}

    def append(
        self,
        partition: int,
        batch: Checked,
        leader_epoch: int,
        done: Decided,
        guard: object | None = None,
        transaction_version: int = 0,
    ) -> int:
        """See the port."""
        replica = self._replicas.get(self._topic, partition)
        if replica is None:
            raise AppendRefused(self._replicas.error_of(self._topic, partition))
        if replica.leader_epoch != leader_epoch:
            raise AppendRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if batch.size > replica.log.config.max_message_bytes:
            raise AppendRefused(ErrorCode.MESSAGE_TOO_LARGE)
        undecided = self._undecided.get(replica)
        if undecided is None:
            undecided = self._of_new(replica)
        elif undecided.write_failed():
            raise AppendRefused(ErrorCode.KAFKA_STORAGE_ERROR)
        now_ms = self._turn.open()
        try:
            appended = replica.append(
                batch, ACKS_ALL, now_ms, False, cast("VerificationGuard | None", guard), transaction_version
            )
        except StorageError as error:
            raise AppendRefused(error.error) from error
        undecided.staged.append((appended.last_offset, replica.log.failures, done))
        self._turn.stage(replica)
        if not self._staged:
            self._turn.after_write(self._written)
        self._staged[undecided] = None
        return appended.base_offset

    def _of_new(self, replica: Partition) -> _Undecided:
        """The queue of a partition that was not written to so far; those of removed ones are let go of."""
        for known in [known for known in self._undecided if known.removed]:
            del self._undecided[known]
        undecided = self._undecided[replica] = _Undecided(replica)
        return undecided

    def _written(self) -> None:
        staged, self._staged = self._staged, {}
        for undecided in staged:
            undecided.written()
