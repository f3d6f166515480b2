"""What changes with the broker's own settings (protocol.md 2.5, 4.1 F2 and S11, 4.3 to 4.5).

One broker of each kind, with two listeners and all settings that these tests look at, serves this module.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record, batches, read_header
from protocol.records.builder import build_batch
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.ports import free_port
from tests.support.wire_client import WireClient

SETTINGS = {
    "auto.create.topics.enable": "false",
    "broker.rack": "r1",
    "compression.type": "lz4",
    "delete.topic.enable": "false",
    "fetch.max.bytes": "2000",
    "log.cleanup.policy": "compact",
    "log.message.timestamp.type": "LogAppendTime",
    "log.segment.bytes": "2000000",
    "max.incremental.fetch.session.cache.slots": "0",
    "max.request.partition.size.limit": "3",
    "message.max.bytes": "5000",
    "num.partitions": "3",
}
LZ4 = 3
TIME = 1_700_000_000_000

Broker = OttlaProcess | KafkaProcess


def with_two_listeners(broker: Broker, external_port: int) -> Broker:
    """The second listener is advertised under another name than the first."""
    listeners = f"PLAINTEXT://{broker.host}:{broker.port},EXTERNAL://{broker.host}:{external_port}"
    protocols = "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT"
    if isinstance(broker, KafkaProcess):
        listeners += f",CONTROLLER://{broker.host}:{broker.controller_port}"
        protocols += ",CONTROLLER:PLAINTEXT"
    advertised = f"PLAINTEXT://{broker.host}:{broker.port},EXTERNAL://localhost:{external_port}"
    broker.overrides |= {
        "listeners": listeners,
        "advertised.listeners": advertised,
        "listener.security.protocol.map": protocols,
    }
    return broker


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Iterator[tuple[Broker, int]]:
    """A broker with these settings, and the port of its second listener."""
    external_port = free_port()
    with with_two_listeners(request.param(overrides=SETTINGS), external_port) as running:
        yield running, external_port


@pytest.fixture
def wire(broker: tuple[Broker, int]) -> Iterator[WireClient]:
    with WireClient(broker[0].bootstrap_servers) as client:
        yield client


def node(found: Any) -> tuple[str, int]:
    (broker,) = found.brokers
    return broker.host, broker.port


def test_a_client_is_told_the_address_of_the_listener_it_came_by(
    broker: tuple[Broker, int], wire: WireClient
) -> None:
    internal, external = ("127.0.0.1", broker[0].port), ("localhost", broker[1])
    with WireClient(f"127.0.0.1:{broker[1]}") as other:
        for version in range(14):
            assert node(wire.metadata(version=version)) == internal
            assert node(other.metadata(version=version)) == external
        for version in range(3):
            assert node(wire.send(m.DescribeClusterRequest(), version)) == internal
            assert node(other.send(m.DescribeClusterRequest(), version)) == external


@pytest.mark.parametrize("version", range(1, 14))
def test_the_rack_is_told(wire: WireClient, version: int) -> None:
    assert [each.rack for each in wire.metadata(version=version).brokers] == ["r1"]


@pytest.mark.parametrize("version", [0, 3, 4, 13])
def test_no_topic_is_made_where_the_broker_forbids_it(wire: WireClient, name: str, version: int) -> None:
    for _ in range(2):
        (topic,) = wire.metadata(name, version=version).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def created(wire: WireClient, name: str, partitions: int = -1, **configs: str) -> Any:
    Create = m.CreateTopicsRequest
    given = [Create.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    topic = Create.CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, configs=given)
    (result,) = wire.send(Create(topics=[topic], timeout_ms=30_000), 7).topics
    assert result.error_code == 0, result
    for partition in range(result.num_partitions):
        while wire.list_offset(name, -1, partition).error_code:
            pass
    return result


def test_a_topic_takes_the_brokers_values(wire: WireClient, name: str) -> None:
    made = created(wire, name)
    assert (made.num_partitions, made.replication_factor) == (3, 1)
    values = {config.name: (config.value, config.config_source) for config in made.configs}
    static = 4
    assert values["cleanup.policy"] == ("compact", static)
    assert values["compression.type"] == ("lz4", static)
    assert values["max.message.bytes"] == ("5000", static)
    assert values["message.timestamp.type"] == ("LogAppendTime", static)
    assert values["segment.bytes"] == ("2000000", static)


def produce(wire: WireClient, topic: str, value: bytes, key: bytes | None = b"k") -> Any:
    return wire.produce(topic, build_batch([Record(0, TIME, key, value)]))


def test_the_brokers_values_count_for_records(wire: WireClient, name: str) -> None:
    created(wire, name, 1)
    assert produce(wire, name, b"x").log_append_time_ms > TIME
    assert wire.stored_codecs(name) == {LZ4}
    incompressible = bytes(range(256)) * 20
    assert produce(wire, name, incompressible).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(wire, name, b"x", None).error_code == ErrorCode.INVALID_RECORD


def test_a_topics_own_values_win(wire: WireClient, name: str) -> None:
    own = {"message.timestamp.type": "CreateTime", "compression.type": "producer", "cleanup.policy": "delete"}
    created(wire, name, 1, **own, **{"max.message.bytes": "100000"})
    assert produce(wire, name, bytes(range(256)) * 20, None).log_append_time_ms == -1
    assert wire.stored_codecs(name) == {0}


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_not_deleted_where_the_broker_forbids_it(
    wire: WireClient, name: str, version: int
) -> None:
    created(wire, name, 1)
    Delete = m.DeleteTopicsRequest
    request = (
        Delete(topics=[Delete.DeleteTopicState(name=name)], timeout_ms=30_000)
        if version >= 6
        else Delete(topic_names=[name], timeout_ms=30_000)
    )
    (result,) = wire.send(request, version).responses
    expected = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
    assert (result.name, result.error_code) == (name, expected)
    assert wire.metadata(name).topics[0].error_code == 0


def test_pages_of_partitions_have_the_brokers_limit(wire: WireClient, name: str) -> None:
    created(wire, name, 5)
    Ask = m.DescribeTopicPartitionsRequest
    for limit in (2000, 3):
        request = Ask(topics=[Ask.TopicRequest(name=name)], response_partition_limit=limit)
        page = wire.send(request, 0)
        assert [p.partition_index for p in page.topics[0].partitions] == [0, 1, 2]
        assert (page.next_cursor.topic_name, page.next_cursor.partition_index) == (name, 3)


def test_a_fetch_has_the_brokers_limit_and_waits_for_no_more(wire: WireClient, name: str) -> None:
    created(wire, name, 1, **{"compression.type": "producer"})
    for number in range(4):
        assert produce(wire, name, b"%d" % number * 800).error_code == 0
    begin = time.monotonic()
    got = wire.fetch(name, 0, min_bytes=1 << 20, max_wait_ms=50_000, max_bytes=1 << 20)
    assert time.monotonic() - begin < 40
    records = bytes(got.records)
    assert [read_header(records, at).base_offset for at, _ in batches(records)] == [0, 1]
    (batch,) = (records[at : at + size] for at, size in list(batches(records))[:1])
    assert len(batch) < 2000 < 3 * len(batch)


def test_the_first_batch_comes_whole_above_the_brokers_limit(wire: WireClient, name: str) -> None:
    created(wire, name, 1, **{"compression.type": "producer"})
    assert produce(wire, name, b"x" * 4000).error_code == 0
    assert len(bytes(wire.fetch(name, 0).records)) > 4000


def test_without_a_free_slot_there_is_no_session(wire: WireClient, name: str) -> None:
    created(wire, name, 1)
    Ask = m.FetchRequest
    place = Ask.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)
    topics = [Ask.FetchTopic(topic=name, partitions=[place])]
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1000}
    full = wire.send(Ask(session_id=0, session_epoch=0, topics=topics, **limits), 12)
    assert (full.error_code, full.session_id, len(full.responses)) == (0, 0, 1)
    unknown = wire.send(Ask(session_id=7, session_epoch=1, topics=topics, **limits), 12)
    assert (unknown.error_code, unknown.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])
