"""A transactional producer step by step, over one connection to a broker that coordinates and leads all.

    producer = TxnProducer(wire, "id").init()
    producer.add(("topic", 0))
    producer.produce("topic", b"a", b"b")
    assert producer.end(commit=True) == 0

Steps return the broker's error. What Kafka answers CONCURRENT_TRANSACTIONS to for a moment is asked again,
where the name of the step says "reach".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record, batches, read_header, records
from protocol.records.builder import build_batch
from protocol.records.control import ABORT, read_end_marker
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient, produce_request

NOW = 1_700_000_000_000
OPENING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
Cell = tuple[str, int]


def until_settled(step: Callable[[], int], *more: ErrorCode) -> int:
    """Repeat a step while a transaction before it is being ended."""
    found: list[int] = []

    def settled() -> bool:
        found[:] = [step()]
        return found[0] not in (ErrorCode.CONCURRENT_TRANSACTIONS, *more)

    wait_until(settled, "the end of the transaction before")
    return found[0]


def await_transactions(wire: WireClient, transactional_id: str) -> None:
    """Have the coordinator of an id serve: its partition is there, and loaded."""

    def serves() -> bool:
        request = m.FindCoordinatorRequest(key=transactional_id, key_type=1)
        if wire.send(request, 3).error_code != ErrorCode.NONE:
            return False
        described = m.DescribeTransactionsRequest(transactional_ids=[transactional_id])
        [found] = wire.send(described, 0).transaction_states
        return found.error_code not in OPENING

    wait_until(serves, "a transaction coordinator")


class TxnProducer:
    """`sequences` are those of the next batches."""

    def __init__(self, wire: WireClient, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self.wire, self.id, self.timeout_ms = wire, transactional_id, timeout_ms
        self.producer_id = self.epoch = -1
        self.sequences: dict[Cell, int] = {}

    def init(self) -> Self:
        """Become the producer of the id, whatever it takes."""
        await_transactions(self.wire, self.id)
        assert until_settled(self.try_init, *OPENING) == ErrorCode.NONE
        return self

    def try_init(self, version: int = 4, **fields: Any) -> int:
        """One InitProducerId."""
        answer = self.wire.send(
            m.InitProducerIdRequest(
                **{"transactional_id": self.id, "transaction_timeout_ms": self.timeout_ms, **fields}
            ),
            version,
        )
        if answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)

    def add(self, *cells: Cell, version: int = 3) -> int:
        """AddPartitionsToTxn; the error of the first partition."""
        return self.add_each(*cells, version=version)[0]

    def add_each(self, *cells: Cell, version: int = 3) -> list[int]:
        """AddPartitionsToTxn; the error of each partition."""
        return self.added(self.post_add(*cells, version=version), *cells)

    def post_add(self, *cells: Cell, version: int = 3) -> int:
        """Send AddPartitionsToTxn; `added` waits for its answer."""
        request = m.AddPartitionsToTxnRequest
        topics: dict[str, list[int]] = {}
        for name, index in cells:
            topics.setdefault(name, []).append(index)
        return self.wire.post(
            request(
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[
                    request.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in topics.items()
                ],
            ),
            version,
        )

    def added(self, posted: int, *cells: Cell) -> list[int]:
        """What it says of these partitions."""
        answer = self.wire.receive(posted)
        errors = {
            (topic.name, each.partition_index): each.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }
        return [errors[cell] for cell in cells]

    def reach_add(self, *cells: Cell) -> int:
        """`add`, once the transaction before has ended."""
        return until_settled(lambda: self.add(*cells))

    def batch(self, cell: Cell, *values: bytes, sequence: int | None = None) -> bytearray:
        """A batch of this producer."""
        first = self.sequences.get(cell, 0) if sequence is None else sequence
        return build_batch(
            [Record(at, NOW, None, value, ()) for at, value in enumerate(values)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=first,
            transactional=True,
        )

    def produce(self, topic: str, *values: bytes, partition: int = 0, version: int = 9) -> int:
        """One batch; the error."""
        posted = self.post_produce(topic, *values, partition=partition, version=version)
        return self.produced(posted, topic, len(values), partition)

    def post_produce(self, topic: str, *values: bytes, partition: int = 0, version: int = 9) -> int:
        """Send one batch; `produced` waits for the answer."""
        batch = self.batch((topic, partition), *values)
        request = produce_request(topic, batch, partition, transactional_id=self.id)
        return self.wire.post(request, version)

    def produced(self, posted: int, topic: str, count: int, partition: int = 0) -> int:
        """The error of a batch of so many records."""
        [answer] = self.wire.receive(posted).responses[0].partition_responses
        if answer.error_code == ErrorCode.NONE:
            cell = (topic, partition)
            self.sequences[cell] = self.sequences.get(cell, 0) + count
        return int(answer.error_code)

    def end(self, commit: bool, version: int = 3) -> int:
        """EndTxn; from version 5 on the producer goes on with what the answer names."""
        answer = self.wire.send(
            m.EndTxnRequest(
                transactional_id=self.id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=commit,
            ),
            version,
        )
        if version >= 5 and answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)

    def add_offsets(self, group: str, version: int = 3) -> int:
        """AddOffsetsToTxn."""
        answer = self.wire.send(
            m.AddOffsetsToTxnRequest(
                transactional_id=self.id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            ),
            version,
        )
        return int(answer.error_code)

    def commit_offset(self, group: str, cell: Cell, offset: int, version: int = 3, **fields: Any) -> int:
        """TxnOffsetCommit of one partition."""
        request = m.TxnOffsetCommitRequest
        partition = request.TxnOffsetCommitRequestPartition(
            partition_index=cell[1], committed_offset=offset, committed_metadata=""
        )
        answer = self.wire.send(
            request(
                transactional_id=self.id,
                group_id=group,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                topics=[request.TxnOffsetCommitRequestTopic(name=cell[0], partitions=[partition])],
                **fields,
            ),
            version,
        )
        return int(answer.topics[0].partitions[0].error_code)

    def state(self) -> str:
        """What DescribeTransactions calls it; the error's name where there is one."""
        [found] = self.wire.send(
            m.DescribeTransactionsRequest(transactional_ids=[self.id]), 0
        ).transaction_states
        return found.transaction_state if not found.error_code else ErrorCode(found.error_code).name

    def await_state(self, state: str) -> None:
        """Wait until the markers are written."""
        wait_until(lambda: self.state() == state, f"state {state} of {self.id}")


def await_markers(servers: str, topic: str, end: int, partition: int = 0) -> None:
    """Wait until a partition ends there and no transaction is open on it: markers come after the answer."""
    with WireClient(servers) as wire:

        def ends() -> list[int]:
            return [wire.list_offset(topic, -1, partition, isolation_level=level).offset for level in (0, 1)]

        wait_until(lambda: ends() == [end, end], f"{topic}-{partition} to end at {end}")


def committed_values(wire: WireClient, topic: str, isolation: int = 1, partition: int = 0) -> list[bytes]:
    """What a reader sees now, by the list of aborted transactions for isolation level 1."""
    values: list[bytes] = []
    offset = 0
    while True:
        answer = wire.fetch(topic, offset, partition=partition, isolation_level=isolation, max_wait_ms=0)
        assert answer.error_code == ErrorCode.NONE, answer
        if not answer.records:
            return values
        aborted: dict[int, list[int]] = {}
        for each in answer.aborted_transactions or ():
            aborted.setdefault(each.producer_id, []).append(each.first_offset)
        for at, _ in batches(answer.records):
            head = read_header(answer.records, at)
            starts = sorted(aborted.get(head.producer_id, ()))
            within = bool(starts) and starts[0] <= head.base_offset
            if head.is_control:
                marker = read_end_marker(answer.records, at)
                if within and marker is not None and marker.type == ABORT:
                    aborted[head.producer_id] = starts[1:]
            elif not (isolation and head.is_transactional and within):
                values += [
                    record.value or b"" for record in records(answer.records, at) if record.offset >= offset
                ]
            last = head.last_offset
        offset = last + 1
