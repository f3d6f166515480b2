"""What a broker remembers that was killed and started again.

One broker of each kind is filled, killed and started once for this module.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record, records
from protocol.records.builder import build_batch
from tests.conformance.test_configs import GROUP, SET, change, entries
from tests.conformance.test_group_configs import SOURCE_GROUP
from tests.conformance.test_idempotence import producer_id as next_producer_id
from tests.conformance.test_update_features import SAFE_DOWNGRADE, level, update
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.transactions import TxnProducer, committed_values
from tests.support.wire_client import WireClient

TOPIC, TRIMMED, NUMBERED = "restarted", "trimmed", "numbered"
ID = "restarted-id"


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Iterator[OttlaProcess | KafkaProcess]:
    """Killed after two batches of two records in each topic; of TRIMMED the first three are deleted. NUMBERED
    has seven batches of an idempotent producer and one of an open transaction.
    """
    with request.param() as running:
        with WireClient(running.bootstrap_servers) as wire:
            for name in (TOPIC, TRIMMED):
                wire.create_topic(name, retention_ms="77000000000")
                wire.produce_values(name, b"a", b"b")
                wire.produce_values(name, b"c", b"d")
            trim(wire, TRIMMED, 3)
            wire.create_topic(NUMBERED)
            producer_id = next_producer_id(wire)
            for sequence in range(7):
                assert send_now(wire, producer_id, sequence) == (0, sequence)
            transactional = TxnProducer(wire, ID, timeout_ms=600_000).init()  # open over a slow start, too
            assert transactional.add((NUMBERED, 0)) == 0
            assert transactional.produce(NUMBERED, b"in a transaction") == 0
            assert change(wire, GROUP, "a b/c", ("share.auto.offset.reset", SET, "earliest")) == 0
            assert update(wire, ("share.version", 0, SAFE_DOWNGRADE)).error_code == 0
        running.kill()
        running.start()
        yield running


@pytest.fixture
def wire(broker: OttlaProcess | KafkaProcess) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap_servers) as client:
        for name in (TOPIC, TRIMMED, NUMBERED):
            while client.list_offset(name, -1).error_code:  # Kafka's leaders take a moment
                pass
        yield client


def send_now(wire: WireClient, producer_id: int, sequence: int) -> tuple[int, int]:
    """Error and offset of a batch with a time of today: a producer of old ones would be forgotten."""
    now_ms = int(time.time() * 1000)
    batch = build_batch(
        [Record(0, now_ms, None, b"%d" % sequence)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )
    answer = wire.produce(NUMBERED, batch)
    return answer.error_code, answer.base_offset


def trim(wire: WireClient, name: str, offset: int) -> None:
    Trim = m.DeleteRecordsRequest
    place = Trim.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = Trim(topics=[Trim.DeleteRecordsTopic(name=name, partitions=[place])], timeout_ms=30_000)
    assert wire.send(request, 2).topics[0].partitions[0].error_code == 0


def leader_epoch(wire: WireClient, name: str = TOPIC) -> int:
    return int(wire.metadata(name).topics[0].partitions[0].leader_epoch)


def test_records_and_settings_are_there(wire: WireClient) -> None:
    assert [r.value for one in wire.stored_batches(TOPIC) for r in records(one)] == [b"a", b"b", b"c", b"d"]
    Ask = m.DescribeConfigsRequest
    asked = Ask.DescribeConfigsResource(
        resource_type=2, resource_name=TOPIC, configuration_keys=["retention.ms"]
    )
    (entry,) = wire.send(Ask(resources=[asked]), 4).results[0].configs
    assert entry.value == "77000000000"


def test_settings_of_groups_and_levels_of_features_are_there(wire: WireClient) -> None:
    entry = entries(wire, GROUP, "a b/c")["share.auto.offset.reset"]
    assert (entry.value, entry.config_source) == ("earliest", SOURCE_GROUP)
    assert (level(wire, "group.version"), level(wire, "share.version")) == (1, 0)


def test_the_start_of_the_log_is_there(broker: OttlaProcess | KafkaProcess, wire: WireClient) -> None:
    """Apache Kafka writes it down once a minute, so that a kill may lose it; we do before we answer."""
    start = wire.list_offset(TRIMMED, -2).offset
    assert start == 3 if isinstance(broker, OttlaProcess) else start in (0, 3)
    assert wire.fetch(TRIMMED, start - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_leader_epoch_has_risen(wire: WireClient) -> None:
    assert leader_epoch(wire) > 0
    assert wire.list_offset(TOPIC, -1).leader_epoch == leader_epoch(wire)
    assert wire.list_offset(TOPIC, -2).leader_epoch == 0


def epoch_end(wire: WireClient, epoch: int, current: int = -1) -> tuple[int, int, int]:
    Ask = m.OffsetForLeaderEpochRequest
    place = Ask.OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    topics = [Ask.OffsetForLeaderTopic(topic=TOPIC, partitions=[place])]
    found = wire.send(Ask(topics=topics), 4).topics[0].partitions[0]
    return found.error_code, found.leader_epoch, found.end_offset


def test_where_the_epochs_ended(wire: WireClient) -> None:
    newest = leader_epoch(wire)
    assert epoch_end(wire, 0) == (0, 0, 4)
    assert epoch_end(wire, newest)[2] == wire.list_offset(TOPIC, -1).offset
    assert epoch_end(wire, newest + 1) == (0, -1, -1)
    assert epoch_end(wire, 0, current=0)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert epoch_end(wire, 0, current=newest)[0] == 0


def test_a_client_with_the_old_epoch_is_fenced(wire: WireClient) -> None:
    newest = leader_epoch(wire)
    for epoch, error in ((0, 74), (newest, 0), (newest + 1, 75)):
        assert wire.fetch(TOPIC, 0, current_leader_epoch=epoch).error_code == error
        Ask = m.ListOffsetsRequest
        place = Ask.ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
        answer = wire.send(Ask(topics=[Ask.ListOffsetsTopic(name=TOPIC, partitions=[place])]), 7)
        assert answer.topics[0].partitions[0].error_code == error


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_a_fenced_fetch_is_told_the_leader(wire: WireClient, version: int) -> None:
    found = wire.metadata(TOPIC)
    Ask = m.FetchRequest
    place = Ask.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000, current_leader_epoch=0)
    topics = [Ask.FetchTopic(topic_id=found.topics[0].topic_id, partitions=[place])]
    answer = wire.send(Ask(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=topics), version)
    (partition,) = answer.responses[0].partitions
    assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    nodes = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
    (broker,) = found.brokers
    if version >= 16:
        leader: Any = partition.current_leader
        assert (leader.leader_id, leader.leader_epoch) == (broker.node_id, leader_epoch(wire))
        assert nodes == [(broker.node_id, broker.host, broker.port)]
    else:
        assert nodes == []


def test_a_log_that_ended_elsewhere_diverges(wire: WireClient) -> None:
    """Who reads behind the end of epoch 0 and says that it was still epoch 0 is told where that ended."""
    assert wire.fetch(TOPIC, 4, last_fetched_epoch=0).diverging_epoch.epoch == -1
    end = wire.produce_values(TOPIC, b"e") + 1
    got = wire.fetch(TOPIC, end, last_fetched_epoch=0)
    assert (got.error_code, got.diverging_epoch.epoch, got.diverging_epoch.end_offset) == (0, 0, 4)
    assert not got.records


def test_appending_goes_on_in_the_new_epoch(wire: WireClient) -> None:
    end = wire.list_offset(TRIMMED, -1).offset
    assert wire.produce_values(TRIMMED, b"e") == end == 4
    assert wire.list_offset(TRIMMED, -1).offset == 5


def test_an_idempotent_producer_goes_on_and_its_last_batches_are_recognised(
    broker: OttlaProcess | KafkaProcess, wire: WireClient
) -> None:
    """Apache Kafka knows the last one only, from a snapshot; where the log is read anew we know five."""
    Ask = m.DescribeProducersRequest
    asked = Ask(topics=[Ask.TopicRequest(name=NUMBERED, partition_indexes=[0])])
    (partition,) = wire.send(asked, 0).topics[0].partitions
    (found,) = [each for each in partition.active_producers if each.last_sequence == 6]
    known = (6, 2) if isinstance(broker, OttlaProcess) else (6,)
    for sequence in known:
        assert send_now(wire, found.producer_id, sequence) == (0, sequence)
    for sequence in (1, 8):
        error, _ = send_now(wire, found.producer_id, sequence)
        assert error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send_now(wire, found.producer_id, 7) == (0, 8)


def test_an_open_transaction_is_still_open_and_can_be_committed(wire: WireClient) -> None:
    producer = TxnProducer(wire, ID)
    producer.await_state("Ongoing")  # once the coordinator has loaded it
    (found,) = wire.send(m.DescribeTransactionsRequest(transactional_ids=[ID]), 0).transaction_states
    producer.producer_id, producer.epoch = found.producer_id, found.producer_epoch
    assert wire.list_offset(NUMBERED, -1, replica_id=-1, isolation_level=1).offset == 7
    assert producer.end(commit=True) == 0
    producer.await_state("CompleteCommit")
    assert b"in a transaction" in committed_values(wire, NUMBERED)
    assert TxnProducer(wire, ID).try_init() == 0
    assert producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
