"""What a broker remembers that was killed and started again (protocol.md 4.1 F9 and F13, 4.2, 4.4 DR1).

One broker of each kind is filled, killed and started once for this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import records
from tests.conformance.test_configs import GROUP, SET, change, entries
from tests.conformance.test_group_configs import SOURCE_GROUP
from tests.conformance.test_update_features import SAFE_DOWNGRADE, level, update
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

TOPIC, TRIMMED = "restarted", "trimmed"


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Iterator[OttlaProcess | KafkaProcess]:
    """Killed after two batches of two records in each topic; of TRIMMED the first three are deleted."""
    with request.param() as running:
        with WireClient(running.bootstrap_servers) as wire:
            for name in (TOPIC, TRIMMED):
                wire.create_topic(name, retention_ms="77000000000")
                wire.produce_values(name, b"a", b"b")
                wire.produce_values(name, b"c", b"d")
            trim(wire, TRIMMED, 3)
            assert change(wire, GROUP, "a b/c", ("share.auto.offset.reset", SET, "earliest")) == 0
            assert update(wire, ("share.version", 0, SAFE_DOWNGRADE)).error_code == 0
        running.kill()
        running.start()
        yield running


@pytest.fixture
def wire(broker: OttlaProcess | KafkaProcess) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap_servers) as client:
        for name in (TOPIC, TRIMMED):
            while client.list_offset(name, -1).error_code:  # Kafka's leaders take a moment
                pass
        yield client


def trim(wire: WireClient, name: str, offset: int) -> None:
    Trim = m.DeleteRecordsRequest
    place = Trim.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = Trim(topics=[Trim.DeleteRecordsTopic(name=name, partitions=[place])], timeout_ms=10_000)
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
