"""Transactions: what producers, readers and groups see of them (KIP-98, KIP-447, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from protocol.records.builder import stamp_crc
from tests.support.transactions import TxnProducer, await_transactions, committed_values, until_settled
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NewProducer = Callable[..., TxnProducer]


@pytest.fixture
def producer(wire: WireClient, name: str) -> TxnProducer:
    """A producer that has its id, of a name of its own."""
    return TxnProducer(wire, name).init()


def latest(wire: WireClient, topic: str, isolation: int) -> int:
    return int(wire.list_offset(topic, -1, replica_id=-1, isolation_level=isolation).offset)


# --- the producer's id


def test_requests_that_are_wrong(wire: WireClient, name: str) -> None:
    await_transactions(wire, name)
    producer = TxnProducer(wire, name)
    for timeout_ms in (0, -1, 900_001):
        assert producer.try_init(transaction_timeout_ms=timeout_ms) == E.INVALID_TRANSACTION_TIMEOUT
    assert producer.try_init(transactional_id="") == E.INVALID_REQUEST
    assert producer.try_init(producer_id=3) == E.INVALID_REQUEST
    assert producer.try_init(producer_epoch=3) == E.INVALID_REQUEST
    producer.await_state("TRANSACTIONAL_ID_NOT_FOUND")  # Apache Kafka loads the topic that it has just made


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_the_next_epoch(wire: WireClient, producer: TxnProducer, version: int) -> None:
    first = (producer.producer_id, producer.epoch)
    assert producer.try_init(version) == E.NONE
    assert (producer.producer_id, producer.epoch) == (first[0], first[1] + 1)


def test_a_producer_that_says_what_it_has(producer: TxnProducer) -> None:
    pid, epoch = producer.producer_id, producer.epoch
    told = {"producer_id": pid, "producer_epoch": epoch}
    assert producer.try_init(**told) == E.NONE
    assert (producer.producer_id, producer.epoch) == (pid, epoch + 1)
    assert producer.try_init(**told) == E.NONE  # the answer was lost: the same again
    assert (producer.producer_id, producer.epoch) == (pid, epoch + 1)
    assert producer.try_init() == E.NONE
    assert producer.try_init(**told) == E.PRODUCER_FENCED
    assert producer.try_init(3, **told) == E.INVALID_PRODUCER_EPOCH
    assert producer.try_init(producer_id=pid + 100_000, producer_epoch=0) == E.PRODUCER_FENCED


def test_a_zombie_is_fenced(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"lost") == E.NONE
    new = TxnProducer(wire, producer.id)
    assert new.try_init() == E.CONCURRENT_TRANSACTIONS  # the open one is aborted first
    assert until_settled(new.try_init) == E.NONE
    assert (new.producer_id, new.epoch) == (producer.producer_id, producer.epoch + 2)
    assert producer.produce(topic, b"zombie") == E.INVALID_PRODUCER_EPOCH
    assert producer.add((topic, 0)) == E.PRODUCER_FENCED
    assert producer.add((topic, 0), version=1) == E.INVALID_PRODUCER_EPOCH
    assert producer.end(commit=True) == E.PRODUCER_FENCED
    assert producer.end(commit=True, version=1) == E.INVALID_PRODUCER_EPOCH
    assert producer.add_offsets("g") == E.PRODUCER_FENCED
    assert committed_values(wire, topic) == []
    assert committed_values(wire, topic, isolation=0) == [b"lost"]


# --- partitions


def test_partitions_that_are_not_there(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add_each((topic, 0), (topic, 7), ("not-there", 0)) == [
        E.OPERATION_NOT_ATTEMPTED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert producer.state() == "Empty"


def test_an_id_that_is_not_known(wire: WireClient, topic: str, name: str) -> None:
    await_transactions(wire, name)
    producer = TxnProducer(wire, name)
    producer.producer_id, producer.epoch = 1, 0
    assert producer.add((topic, 0)) == E.INVALID_PRODUCER_ID_MAPPING
    assert producer.end(commit=True) == E.INVALID_PRODUCER_ID_MAPPING
    assert producer.add_offsets("g") == E.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds(topic: str, producer: TxnProducer, version: int) -> None:
    assert producer.add((topic, 0), version=version) == E.NONE
    assert producer.add((topic, 0), version=version) == E.NONE
    assert producer.state() == "Ongoing"
    assert producer.end(commit=False) == E.NONE


def verify(producer: TxnProducer, *cells: tuple[str, int], version: int = 5) -> list[int]:
    """AddPartitionsToTxn as brokers ask it, without adding."""
    request = m.AddPartitionsToTxnRequest
    asked = request.AddPartitionsToTxnTransaction(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=True,
        topics=[request.AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in cells],
    )
    [result] = producer.wire.send(request(transactions=[asked]), version).results_by_transaction
    return [
        each.partition_error_code for topic in result.topic_results for each in topic.results_by_partition
    ]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_verify_without_adding(wire: WireClient, name: str, version: int) -> None:
    wire.create_topic(name, 2)
    producer = TxnProducer(wire, name).init()
    cells = ((name, 0), (name, 1))
    assert producer.add((name, 0)) == E.NONE
    assert verify(producer, (name, 0), version=version) == [E.NONE]
    assert verify(producer, (name, 1), version=version) == [E.TRANSACTION_ABORTABLE]
    producer.epoch += 1
    assert verify(producer, (name, 0)) == [E.PRODUCER_FENCED]
    producer.epoch -= 1
    producer.producer_id += 1
    assert verify(producer, (name, 0)) == [E.INVALID_PRODUCER_ID_MAPPING]
    producer.producer_id -= 1
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert verify(producer, *cells[:1]) == [E.TRANSACTION_ABORTABLE]


# --- producing


@pytest.mark.parametrize(("version", "error"), [(9, E.INVALID_TXN_STATE), (11, E.TRANSACTION_ABORTABLE)])
def test_a_partition_that_was_not_added_takes_nothing(
    wire: WireClient, topic: str, producer: TxnProducer, version: int, error: E
) -> None:
    assert producer.produce(topic, b"a", version=version) == error
    assert (latest(wire, topic, 0), latest(wire, topic, 1)) == (0, 0)


def test_a_batch_after_the_end_of_its_transaction_takes_nothing(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert producer.produce(topic, b"late") == E.INVALID_TXN_STATE
    assert latest(wire, topic, 1) == 2
    assert committed_values(wire, topic) == [b"a"]


def test_a_batch_that_is_of_no_transaction_while_one_is_open(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    batch = producer.batch((topic, 0), b"b")
    plain = bytearray(batch)
    plain[22] &= ~0x10
    stamp_crc(plain, 0, len(plain))
    assert wire.produce(topic, plain).error_code == E.INVALID_TXN_STATE
    assert producer.end(commit=True) == E.NONE


def test_batches_of_two_producers_in_one_request(wire: WireClient, name: str) -> None:
    wire.create_topic(name, 2)
    one, other = TxnProducer(wire, name).init(), TxnProducer(wire, f"{name}-other").init()
    assert one.add((name, 0)) == E.NONE
    assert other.add((name, 1)) == E.NONE
    request = m.ProduceRequest
    partitions = [
        request.PartitionProduceData(index=0, records=bytes(one.batch((name, 0), b"a"))),
        request.PartitionProduceData(index=1, records=bytes(other.batch((name, 1), b"b"))),
    ]
    topics = [request.TopicProduceData(name=name, partition_data=partitions)]
    answer = wire.send(request(transactional_id=one.id, acks=-1, timeout_ms=10_000, topic_data=topics), 9)
    errors = [each.error_code for each in answer.responses[0].partition_responses]
    assert errors == [E.INVALID_PRODUCER_ID_MAPPING] * 2


def test_a_batch_that_comes_twice_is_stored_once(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    producer.sequences.clear()
    assert producer.produce(topic, b"a") == E.NONE
    producer.sequences[topic, 0] = 5
    assert producer.produce(topic, b"gap") == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert committed_values(wire, topic) == [b"a"]


# --- the end


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("commit", [True, False])
def test_every_version_ends_and_may_be_repeated(
    wire: WireClient, topic: str, producer: TxnProducer, version: int, commit: bool
) -> None:
    assert producer.end(commit, version) == E.INVALID_TXN_STATE  # nothing has begun
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    assert producer.end(commit, version) == E.NONE
    producer.await_state("CompleteCommit" if commit else "CompleteAbort")
    assert producer.end(commit, version) == E.NONE
    assert producer.end(not commit, version) == E.INVALID_TXN_STATE
    assert committed_values(wire, topic) == ([b"a"] if commit else [])


def test_a_transaction_of_several_partitions_in_turn(wire: WireClient, name: str) -> None:
    wire.create_topic(name, 3)
    producer = TxnProducer(wire, name).init()
    for turn in range(4):
        assert producer.reach_add((name, 0), (name, 1), (name, 2)) == E.NONE
        for partition in range(3):
            assert producer.produce(name, b"%d" % turn, partition=partition) == E.NONE
        assert producer.end(commit=turn % 2 == 0) == E.NONE
    producer.await_state("CompleteAbort")
    for partition in range(3):
        assert committed_values(wire, name, partition=partition) == [b"0", b"2"]


def test_epochs_of_their_own(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    """Transactions of version 2: the broker adds partitions by itself, each end raises the epoch."""
    pid, epoch = producer.producer_id, producer.epoch
    for turn in range(3):
        assert until_settled(lambda turn=turn: producer.produce(topic, b"%d" % turn, version=12)) == E.NONE
        assert producer.state() == "Ongoing"
        assert producer.end(commit=turn != 1, version=5) == E.NONE
        assert (producer.producer_id, producer.epoch) == (pid, epoch + turn + 1)
    producer.await_state("CompleteCommit")
    assert committed_values(wire, topic) == [b"0", b"2"]
    producer.epoch -= 1
    assert producer.end(commit=True, version=5) == E.NONE  # the answer was lost: the same again
    assert producer.epoch == epoch + 3
    producer.epoch -= 1
    assert producer.end(commit=False, version=5) == E.INVALID_TXN_STATE
    producer.epoch += 1
    assert producer.end(commit=True, version=5) == E.INVALID_TXN_STATE
    assert producer.end(commit=False, version=5) == E.NONE  # of nothing; it raises the epoch
    assert producer.epoch == epoch + 4


# --- readers


def test_an_open_transaction_holds_the_last_stable_offset(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    wire.produce_values(topic, b"before")
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    wire.produce_values(topic, b"after")
    assert (latest(wire, topic, 0), latest(wire, topic, 1)) == (3, 1)
    assert committed_values(wire, topic) == [b"before"]
    assert committed_values(wire, topic, isolation=0) == [b"before", b"a", b"after"]
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert (latest(wire, topic, 0), latest(wire, topic, 1)) == (4, 4)
    assert committed_values(wire, topic) == [b"before", b"after"]


def test_transactions_that_overlap_and_end_in_the_other_order(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    other = TxnProducer(wire, f"{producer.id}-other").init()
    for each in (producer, other):
        assert each.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a1") == E.NONE
    assert other.produce(topic, b"b1") == E.NONE
    assert producer.produce(topic, b"a2") == E.NONE
    assert other.end(commit=True) == E.NONE
    other.await_state("CompleteCommit")
    assert latest(wire, topic, 1) == 0
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert latest(wire, topic, 1) == 5
    assert committed_values(wire, topic) == [b"b1"]
    answer = wire.fetch(topic, 0, isolation_level=1)
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions]
    assert aborted == [(producer.producer_id, 0)]
    assert wire.fetch(topic, 0, isolation_level=0).aborted_transactions is None


# --- offsets of groups


def fetched(wire: WireClient, group: str, cell: tuple[str, int], *, stable: bool = False) -> tuple[int, int]:
    """(offset, error) of OffsetFetch."""
    request = m.OffsetFetchRequest
    topics = [request.OffsetFetchRequestTopics(name=cell[0], partition_indexes=[cell[1]])]
    asked = request.OffsetFetchRequestGroup(group_id=group, topics=topics)
    [found] = wire.send(request(groups=[asked], require_stable=stable), 8).groups
    [topic] = found.topics
    [partition] = topic.partitions
    return partition.committed_offset, partition.error_code


@pytest.fixture
def group(new_member: Callable[..., object], name: str) -> str:
    """The name of a group; its coordinator serves."""
    return name


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_appear_with_the_transaction_or_not_at_all(
    wire: WireClient, topic: str, group: str, producer: TxnProducer, commit: bool
) -> None:
    cell = (topic, 0)
    assert producer.add_offsets(group) == E.NONE
    assert producer.commit_offset(group, cell, 7) == E.NONE
    assert fetched(wire, group, cell) == (-1, E.NONE)
    assert fetched(wire, group, cell, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert producer.end(commit) == E.NONE
    producer.await_state("CompleteCommit" if commit else "CompleteAbort")
    assert fetched(wire, group, cell, stable=True) == (7 if commit else -1, E.NONE)


@pytest.mark.parametrize("version", range(5))
def test_offsets_that_were_not_added(topic: str, group: str, producer: TxnProducer, version: int) -> None:
    error = E.TRANSACTION_ABORTABLE if version >= 4 else E.INVALID_TXN_STATE
    assert producer.commit_offset(group, (topic, 0), 7, version) == error


def test_a_broker_that_adds_offsets_by_itself(
    wire: WireClient, topic: str, group: str, producer: TxnProducer
) -> None:
    assert producer.commit_offset(group, (topic, 0), 7, 5) == E.NONE
    assert producer.state() == "Ongoing"
    assert producer.end(commit=True, version=5) == E.NONE
    wait_until(lambda: fetched(wire, group, (topic, 0)) == (7, E.NONE), "the offset")


def test_offsets_from_who_is_no_member(topic: str, group: str, producer: TxnProducer) -> None:
    assert producer.add_offsets(group) == E.NONE
    cell = (topic, 0)
    stranger = {"member_id": "nobody", "generation_id_or_member_epoch": 3}
    assert producer.commit_offset(group, cell, 7, **stranger) == E.ILLEGAL_GENERATION
    assert producer.commit_offset(group, ("not-there", 0), 7) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit_offset(group, cell, 7) == E.NONE
    assert producer.end(commit=True) == E.NONE


def test_two_transactions_on_one_offset(
    wire: WireClient, topic: str, group: str, producer: TxnProducer
) -> None:
    other = TxnProducer(wire, f"{producer.id}-other").init()
    cell = (topic, 0)
    for each, offset in ((producer, 3), (other, 5)):
        assert each.add_offsets(group) == E.NONE
        assert each.commit_offset(group, cell, offset) == E.NONE
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert fetched(wire, group, cell) == (3, E.NONE)
    assert fetched(wire, group, cell, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert other.end(commit=False) == E.NONE
    other.await_state("CompleteAbort")
    assert fetched(wire, group, cell, stable=True) == (3, E.NONE)


def test_a_group_that_is_deleted_loses_what_is_pending(
    wire: WireClient, topic: str, group: str, producer: TxnProducer
) -> None:
    assert producer.add_offsets(group) == E.NONE
    assert producer.commit_offset(group, (topic, 0), 7) == E.NONE
    [deleted] = wire.send(m.DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == E.NONE
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert fetched(wire, group, (topic, 0), stable=True) == (-1, E.NONE)


# --- what admins see


def test_transactions_described_and_listed(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    request = m.DescribeTransactionsRequest(transactional_ids=[producer.id, "", "not-known"])
    found, empty, unknown = wire.send(request, 0).transaction_states
    assert (empty.error_code, unknown.error_code) == (E.INVALID_REQUEST, E.TRANSACTIONAL_ID_NOT_FOUND)
    assert (found.error_code, found.transaction_state) == (E.NONE, "Ongoing")
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.epoch)
    assert found.transaction_timeout_ms == 60_000
    assert [(each.topic, each.partitions) for each in found.topics] == [(topic, [0])]

    def listed(version: int = 2, **filters: object) -> list[tuple[str, str]]:
        answer = wire.send(m.ListTransactionsRequest(**filters), version)  # type: ignore[arg-type]
        assert answer.error_code == E.NONE
        return [(each.transactional_id, each.transaction_state) for each in answer.transaction_states]

    mine = (producer.id, "Ongoing")
    assert mine in listed(0)
    assert listed(producer_id_filters=[producer.producer_id]) == [mine]
    assert mine in listed(state_filters=["Ongoing", "Nonsense"])
    assert mine not in listed(state_filters=["Empty"])
    assert listed(state_filters=["Nonsense"]) == []
    assert mine not in listed(duration_filter=1_000_000)
    assert mine in listed(duration_filter=0)
    assert listed(transactional_id_pattern=f".*{producer.id[3:]}") == [mine]
    assert listed(transactional_id_pattern=producer.id[:-1] + "x") == []
    answer = wire.send(m.ListTransactionsRequest(state_filters=["Nonsense", "Empty"]), 0)
    assert answer.unknown_state_filters == ["Nonsense"]
    bad = wire.send(m.ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert bad.error_code == E.INVALID_REGULAR_EXPRESSION
    assert producer.end(commit=True) == E.NONE


def producers_of(wire: WireClient, topic: str, partition: int = 0) -> list[tuple[int, ...]]:
    request = m.DescribeProducersRequest
    asked = request.TopicRequest(name=topic, partition_indexes=[partition])
    [found] = wire.send(request(topics=[asked]), 0).topics
    [part] = found.partitions
    if part.error_code:
        return [(part.error_code,)]
    return [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in part.active_producers
    ]


def test_producers_described(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    pid = producer.producer_id
    assert producers_of(wire, topic) == []
    wire.produce_values(topic, b"plain")
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a", b"b") == E.NONE
    assert producers_of(wire, topic) == [(pid, 0, 1, -1, 1)]
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    [(_, _, sequence, coordinator_epoch, start)] = producers_of(wire, topic)
    assert (sequence, start) == (1, -1)
    assert coordinator_epoch >= 0
    assert producers_of(wire, topic, 5) == [(E.UNKNOWN_TOPIC_OR_PARTITION,)]


def write_marker(
    wire: WireClient, producer: TxnProducer, topic: str, coordinator_epoch: int, commit: bool
) -> int:
    request = m.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        topics=[request.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
    )
    [result] = wire.send(request(markers=[marker]), 1).markers
    return int(result.topics[0].partitions[0].error_code)


def test_markers_of_coordinators_that_were_replaced(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    assert producer.try_init() == E.NONE  # so that there is an epoch before
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    assert write_marker(wire, producer, topic, 9, commit=False) == E.NONE
    assert write_marker(wire, producer, topic, 8, commit=True) == E.TRANSACTION_COORDINATOR_FENCED
    producer.epoch -= 1
    assert write_marker(wire, producer, topic, 9, commit=True) == E.INVALID_PRODUCER_EPOCH
    producer.epoch += 1
    assert committed_values(wire, topic) == []
    assert write_marker(wire, producer, "not-there", 9, commit=True) == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_deleted_meanwhile_does_not_stop_the_end(
    wire: WireClient, name: str, producer: TxnProducer
) -> None:
    kept, gone = f"{name}-kept", f"{name}-gone"
    for each in (kept, gone):
        wire.create_topic(each)
        assert producer.add((each, 0)) == E.NONE
        assert producer.produce(each, b"a") == E.NONE
    topics = [m.DeleteTopicsRequest.DeleteTopicState(name=gone)]
    wire.send(m.DeleteTopicsRequest(topics=topics, timeout_ms=10_000), 6)
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert committed_values(wire, kept) == [b"a"]
