"""What an operator asks a cluster about transactions: KIP-664, over `ottla.client`.

A transaction *hangs* where a partition has it open while no coordinator knows it: nobody will end it, and
readers of committed records wait for ever. Failures are ClientErrors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ottla.client import NO_NODE, ClientError, KafkaClient, check
from protocol import messages as m
from protocol.errors import ErrorCode

TRANSACTION_KEY = 1
ONE_KEY = 3  # the last version of FindCoordinator with a single key
RETRY_PAUSE_S = 0.1
FENCING_TIMEOUT_MS = 1

NOT_FOUND = "DescribeTransactions request for transactionalId `{}` failed because the ID could not be found."

Cell = tuple[str, int]

_WAITS = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


class OpenTransaction(NamedTuple):
    """A transaction that a partition has open, as DescribeProducers tells of it."""

    topic: str
    partition: int
    producer: m.DescribeProducersResponse.ProducerState


class TransactionAdmin:
    """See the module."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client

    def listed(
        self, *, duration_ms: int = -1, pattern: str | None = None, producer_ids: Sequence[int] = ()
    ) -> list[tuple[int, m.ListTransactionsResponse.TransactionState]]:
        """(coordinator, state) of every transactional id that passes the filters, by its name."""
        self._client.metadata([])
        found = []
        request = m.ListTransactionsRequest(
            duration_filter=duration_ms,
            transactional_id_pattern=pattern,
            producer_id_filters=list(producer_ids),
        )
        for node in sorted(self._client.nodes):
            answer = self._patiently(lambda node=node: self._client.call(request, node))  # type: ignore[misc]
            found += [(node, each) for each in answer.transaction_states]
        return sorted(found, key=lambda pair: pair[1].transactional_id)

    def described(self, transactional_id: str) -> tuple[int, m.DescribeTransactionsResponse.TransactionState]:
        """(coordinator, state) of one transactional id."""
        request = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])

        def ask() -> tuple[int, Any]:
            node = self._coordinator(transactional_id)
            [state] = self._client.call(request, node).transaction_states
            unknown = state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            check(state.error_code, NOT_FOUND.format(transactional_id) if unknown else None)
            return node, state

        found: tuple[int, m.DescribeTransactionsResponse.TransactionState] = self._patiently(ask)
        return found

    def producers(
        self, topic: str, partition: int, broker_id: int = NO_NODE
    ) -> list[m.DescribeProducersResponse.ProducerState]:
        """What the leader of a partition, or another replica, knows of its producers."""
        node = broker_id
        if node == NO_NODE:
            node = self._client.leader(topic, partition)
        else:
            self._client.metadata([topic])
        request = m.DescribeProducersRequest
        asked = request.TopicRequest(name=topic, partition_indexes=[partition])
        [found] = self._client.call(request(topics=[asked]), node).topics
        [part] = found.partitions
        check(part.error_code, part.error_message)
        return list(part.active_producers)

    def abort(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """Write the marker that aborts whatever this producer has open on a partition."""
        request = m.WriteTxnMarkersRequest
        marker = request.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            topics=[request.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        )
        node = self._client.leader(topic, partition)
        [result] = self._client.call(request(markers=[marker]), node).markers
        check(result.topics[0].partitions[0].error_code)

    def fence(self, transactional_id: str) -> None:
        """Take the id over for a moment: what is open is aborted, and its producer may write no more."""
        request = m.InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=FENCING_TIMEOUT_MS
        )

        def ask() -> None:
            check(self._client.call(request, self._coordinator(transactional_id)).error_code)

        self._patiently(ask)

    def cells(self, topic: str | None, partition: int | None, broker_id: int | None) -> list[Cell]:
        """The partitions to look at: of a topic, or led by a broker, or both."""
        if topic is not None and partition is not None:
            return [(topic, partition)]
        found: list[Cell] = []
        for described in self._client.metadata(None if topic is None else [topic]):
            name = described.name or ""
            check(described.error_code, what=name)
            led = [each for each in described.partitions if broker_id in (None, each.leader_id)]
            found += [(name, each.partition_index) for each in led]
        return sorted(found)

    def hanging(self, cells: Iterable[Cell], until_ms: int) -> list[OpenTransaction]:
        """Transactions open on partitions whose last write is not younger than `until_ms`, and that their
        coordinator does not know as open there.
        """
        suspects = [
            OpenTransaction(topic, partition, producer)
            for topic, partition in cells
            for producer in self.producers(topic, partition)
            if producer.current_txn_start_offset >= 0 and producer.last_timestamp <= until_ms
        ]
        if not suspects:
            return []
        ids = {each.producer.producer_id for each in suspects}
        known: dict[int, set[Cell]] = {}
        for _, state in self.listed(producer_ids=sorted(ids)):
            try:
                _, described = self.described(state.transactional_id)
            except ClientError as error:
                if error.error is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                continue  # it has expired meanwhile
            known.setdefault(state.producer_id, set()).update(
                (each.topic, index) for each in described.topics for index in each.partitions
            )
        return [
            each
            for each in suspects
            if (each.topic, each.partition) not in known.get(each.producer.producer_id, ())
        ]

    def _coordinator(self, transactional_id: str) -> int:
        self._client.metadata([])
        request = m.FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION_KEY)
        answer: m.FindCoordinatorResponse = self._client.call(request, version=ONE_KEY)
        check(answer.error_code, answer.error_message)
        return answer.node_id

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """Ask again while the coordinator moves, loads or is at work, until the client's time is over."""
        deadline = time.monotonic() + self._client.timeout_s
        while True:
            try:
                answer = ask()
                check(getattr(answer, "error_code", 0))
                return answer
            except ClientError as error:
                if error.error not in _WAITS or time.monotonic() >= deadline:
                    raise
            time.sleep(RETRY_PAUSE_S)
