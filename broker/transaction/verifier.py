"""Asking the coordinator of a transaction whether partitions belong to it, or to add them (KIP-890).

A coordinator on this broker is asked directly, others through one request at a time for each broker, which
takes along what has come up meanwhile. Answers are those of AddPartitionsToTxn for each partition;
COORDINATOR_NOT_AVAILABLE where nobody coordinates the transaction now, NETWORK_EXCEPTION where the
coordinator did not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.transaction.endings import by_topic
from coordinator.result import CoordinatorError
from coordinator.transaction.state import TopicPartition
from coordinator.transaction.transitions import OWN_EPOCHS, Known
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from broker.transactions import Transactions
    from coordinator.ports import Timer
    from replication.cluster.channel import Channels
    from runtime.tasks import TaskScope

PURPOSE: Final = "transaction-partitions"

Errors = dict[TopicPartition, ErrorCode]
Done = Callable[[Errors], None]


class Question(NamedTuple):
    """What is asked about one transaction. `add`: put the partitions into it where they are not."""

    transactional_id: str
    producer: Known
    partitions: Sequence[TopicPartition]
    add: bool


class RetrySettings(NamedTuple):
    """How often a transaction whose predecessor is still being ended is asked again."""

    backoff_ms: int
    max_ms: int


class Verifier:
    """See the module. `channels` is None for a broker alone."""

    def __init__(
        self,
        node_id: int,
        transactions: Transactions,
        timer: Timer,
        tasks: TaskScope,
        channels: Channels | None,
        retry: RetrySettings,
    ) -> None:
        self._node_id, self._transactions = node_id, transactions
        self._timer, self._tasks, self._channels, self._retry = timer, tasks, channels, retry
        self._waiting: dict[int, list[tuple[Question, Done]]] = {}  # an entry while a request is under way

    def ask(self, question: Question, done: Done) -> None:
        """`done` gets an error for each partition, perhaps at once.

        Where partitions are to be added and the transaction before is still being ended, which is over in a
        moment, the question is repeated for add.partitions.to.txn.retry.backoff.max.ms.
        """
        left_ms = self._retry.max_ms if question.add else 0

        def answered(errors: Errors) -> None:
            nonlocal left_ms
            if left_ms > 0 and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values():
                left_ms -= self._retry.backoff_ms
                self._timer.add(self._retry.backoff_ms, lambda: self._ask(question, answered))
            else:
                done(errors)

        self._ask(question, answered)

    def _ask(self, question: Question, done: Done) -> None:
        coordinator = self._transactions.coordinator_of(question.transactional_id)
        if coordinator == self._node_id:
            self._ask_here(question, done)
        elif coordinator == NO_LEADER or self._channels is None:
            done(dict.fromkeys(question.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif (waiting := self._waiting.get(coordinator)) is not None:
            waiting.append((question, done))
        else:
            self._waiting[coordinator] = [(question, done)]
            self._tasks.spawn(f"transactions at broker {coordinator}", self._ask_there(coordinator))

    def _ask_here(self, question: Question, done: Done) -> None:
        manager = self._transactions.manager()
        partitions = question.partitions
        if question.add:
            manager.add_partitions(
                question.transactional_id,
                question.producer,
                partitions,
                OWN_EPOCHS,
                lambda error, _: done(dict.fromkeys(partitions, error)),
            )
            return
        try:
            errors = manager.verify(question.transactional_id, question.producer, partitions)
        except CoordinatorError as refused:
            errors = [refused.error] * len(partitions)
        done(dict(zip(partitions, errors, strict=True)))

    async def _ask_there(self, broker_id: int) -> None:
        """Ask a broker what there is to ask, until there is nothing."""
        assert self._channels is not None
        channel = self._channels.to(broker_id, PURPOSE)
        try:
            while waiting := self._waiting[broker_id]:
                asked = {each[0].transactional_id: each for each in reversed(waiting)}
                self._waiting[broker_id] = [
                    each for each in waiting if asked[each[0].transactional_id] is not each
                ]
                questions = [question for question, _ in asked.values()]
                try:
                    answer = await channel.ask(_request(questions))
                    errors = _errors(answer)
                except ChannelLost:
                    errors = {}
                for question, done in asked.values():
                    found = errors.get(question.transactional_id, {})
                    done({cell: found.get(cell, ErrorCode.NETWORK_EXCEPTION) for cell in question.partitions})
        finally:
            del self._waiting[broker_id]


def _request(questions: Sequence[Question]) -> m.AddPartitionsToTxnRequest:
    request = m.AddPartitionsToTxnRequest
    return request(
        transactions=[
            request.AddPartitionsToTxnTransaction(
                transactional_id=question.transactional_id,
                producer_id=question.producer.producer_id,
                producer_epoch=question.producer.epoch,
                verify_only=not question.add,
                topics=[
                    request.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in by_topic(question.partitions).items()
                ],
            )
            for question in questions
        ]
    )


def _errors(answer: m.AddPartitionsToTxnResponse) -> dict[str, Errors]:
    """By transactional id. An error of the whole request leaves nothing."""
    return {
        result.transactional_id: {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
        for result in answer.results_by_transaction
    }
