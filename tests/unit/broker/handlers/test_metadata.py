"""Metadata: protocol.md 4.3, M1 to M10, seen at every version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.uuids import ZERO_UUID
from replication.metadata.image import BrokerImage, EndpointImage, PartitionImage, TopicImage
from tests.support.handler_broker import HandlerBroker

Topic = m.MetadataRequest.MetadataRequestTopic
NEVER = -(1 << 31)


def named(*names: str) -> list[m.MetadataRequest.MetadataRequestTopic]:
    return [Topic(name=name) for name in names]


def ask(
    broker: HandlerBroker, version: int, listener: str = "PLAINTEXT", **fields: object
) -> m.MetadataResponse:
    return broker.call(m.MetadataRequest(**fields), version, listener)


def names(answer: m.MetadataResponse) -> list[str | None]:
    return [topic.name for topic in answer.topics]


def test_m1_all_topics_and_none(broker: HandlerBroker) -> None:
    broker.create("a")
    broker.create("b")
    assert sorted(names(ask(broker, 0, topics=[]))) == ["a", "b"]
    assert names(ask(broker, 1, topics=[])) == []
    for version in (1, 9, 13):
        assert sorted(names(ask(broker, version, topics=None))) == ["a", "b"]


@pytest.mark.parametrize("version", range(14))
def test_a_topic_at_every_version(broker: HandlerBroker, version: int) -> None:
    created = broker.create("a", 2)
    answer = ask(broker, version, topics=named("a"))
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "a", False)
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (0, 1, [1], [1]),
        (1, 1, [1], [1]),
    ]
    assert [p.leader_epoch for p in topic.partitions] == [0 if version >= 7 else -1] * 2
    assert topic.topic_id == (created.topic_id if version >= 10 else ZERO_UUID)
    (known,) = answer.brokers
    assert (known.node_id, known.host, known.port) == (1, "broker.test", 9092)
    assert known.rack == ("r1" if version >= 1 else None)
    assert answer.controller_id == (1 if version >= 1 else -1)
    assert (answer.cluster_id is not None) == (version >= 2)
    assert answer.error_code == 0


def test_addresses_are_those_of_the_listener(broker: HandlerBroker) -> None:
    (known,) = ask(broker, 12, "EXTERNAL", topics=[]).brokers
    assert (known.host, known.port) == ("public.test", 19092)
    assert ask(broker, 12, "ELSEWHERE", topics=[]).brokers == []


def test_m2_null_names_and_ids_before_v12_are_refused_for_all(broker: HandlerBroker) -> None:
    broker.create("a")
    for topics in ([Topic(name=None), Topic(name="a")], [Topic(name="a", topic_id=bytes(15) + b"1")]):
        answer = ask(broker, 11, topics=topics)
        assert [topic.error_code for topic in answer.topics] == [42] * len(topics)
        assert answer.brokers == []
        assert answer.controller_id == -1


def test_m2_topics_by_id(broker: HandlerBroker) -> None:
    created = broker.create("a")
    unknown = bytes(15) + b"1"
    answer = ask(
        broker, 12, topics=[Topic(name=None, topic_id=created.topic_id), Topic(name="a", topic_id=unknown)]
    )
    assert [(t.error_code, t.name, t.topic_id) for t in answer.topics] == [
        (0, "a", created.topic_id),
        (100, None, unknown),
    ]


def test_m2_neither_name_nor_id_fails_as_a_whole(broker: HandlerBroker) -> None:
    answer = ask(broker, 13, topics=[Topic(name=None)])
    assert (answer.error_code, answer.brokers, answer.controller_id) == (-1, [], -1)
    assert [(t.error_code, t.name) for t in answer.topics] == [(-1, "")]
    assert ask(broker, 12, topics=[Topic(name=None)]).topics[0].error_code == -1


def test_m4_a_missing_topic_is_made_before_the_answer(broker: HandlerBroker) -> None:
    for version, allowed in ((0, False), (3, False), (4, True), (13, True)):
        name = f"t{version}"
        fields = {"topics": named(name)} | ({"allow_auto_topic_creation": allowed} if version >= 4 else {})
        (topic,) = ask(broker, version, **fields).topics
        assert (topic.error_code, topic.name) == (0, name)
        assert [p.leader_id for p in topic.partitions] == [1]
        assert broker.ctx.replicas.get(name, 0) is not None


def test_m4_the_defaults_of_the_broker_count(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"num.partitions": "3"}) as broker:
        assert len(ask(broker, 9, topics=named("a")).topics[0].partitions) == 3
    with HandlerBroker(tmp_path / "2", {"default.replication.factor": "2"}) as broker:
        assert ask(broker, 9, topics=named("a")).topics[0].error_code == 38


def test_m4_m5_not_made_where_it_is_not_wanted(broker: HandlerBroker, tmp_path: Path) -> None:
    answer = ask(broker, 9, topics=named("a", "a b", ""), allow_auto_topic_creation=False)
    assert [(t.error_code, t.name) for t in answer.topics] == [(3, "a"), (17, "a b"), (17, "")]
    with HandlerBroker(tmp_path / "2", {"auto.create.topics.enable": "false"}) as other:
        assert ask(other, 9, topics=named("a")).topics[0].error_code == 3
        assert ask(other, 0, topics=named("a")).topics[0].error_code == 3


def test_m5_an_invalid_name_is_17_also_where_topics_are_made(broker: HandlerBroker) -> None:
    answer = ask(broker, 9, topics=named("ok", "not ok", "x" * 250))
    assert [t.error_code for t in answer.topics] == [0, 17, 17]


def test_of_the_coordinators_topics_that_of_groups_is_made(broker: HandlerBroker) -> None:
    asked = named("__transaction_state", "__consumer_offsets", "plain")
    other, groups, plain = ask(broker, 9, topics=asked).topics
    assert (other.error_code, other.is_internal) == (3, True)
    assert (groups.error_code, groups.is_internal, len(groups.partitions)) == (0, True, 50)
    assert (plain.error_code, plain.is_internal) == (0, False)
    assert broker.ctx.groups.coordinator_of("g") == 1


def test_the_topic_of_groups_cannot_be_made_with_too_few_brokers(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"offsets.topic.replication.factor": "2"}) as broker:
        (topic,) = ask(broker, 9, topics=named("__consumer_offsets")).topics
        assert (topic.error_code, topic.is_internal) == (38, True)


def test_a_name_given_twice_is_answered_once(broker: HandlerBroker) -> None:
    broker.create("a")
    assert names(ask(broker, 9, topics=named("a", "a"))) == ["a"]


def with_dead_broker(broker: HandlerBroker) -> None:
    """Partition 0 has a replica on the dead broker 2, partition 1 its leader, 2 one on broker 3 elsewhere."""
    image = broker.ctx.image
    partitions = (
        PartitionImage(0, 1, 4, 1, (1, 2), (1, 2)),
        PartitionImage(1, 2, 0, 1, (2,), (2, 1)),
        PartitionImage(2, 3, 0, 1, (3,), (3,)),
    )
    image = image.with_topics([TopicImage("d", bytes(15) + b"d", partitions)])
    elsewhere = BrokerImage(3, 9, {"EXTERNAL": EndpointImage("third.test", 1)})
    broker.ctx.holder.current = image.with_brokers({**image.brokers, 3: elsewhere})


def test_m6_partitions_without_a_leader(broker: HandlerBroker) -> None:
    with_dead_broker(broker)
    facts = {
        version: [
            (p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes, p.offline_replicas)
            for p in ask(broker, version, topics=named("d")).topics[0].partitions
        ]
        for version in (0, 1, 5, 6)
    }
    assert facts[0] == [(9, 1, [1], [1], []), (5, -1, [1], [], []), (5, -1, [3], [3], [])]
    assert facts[1] == [(0, 1, [1, 2], [1, 2], []), (5, -1, [2, 1], [2], []), (5, -1, [3], [3], [])]
    assert facts[5] == [(0, 1, [1, 2], [1, 2], [2]), (5, -1, [2, 1], [2], [2]), (5, -1, [3], [3], [])]
    assert facts[6][2] == (72, -1, [3], [3], [])


def test_m7_a_controller_that_is_not_known(broker: HandlerBroker) -> None:
    broker.ctx.holder.current = replace(broker.ctx.image, controller_id=-1)
    assert ask(broker, 9, topics=[]).controller_id == -1


def test_m8_authorised_operations_only_when_asked(broker: HandlerBroker) -> None:
    broker.create("a")
    plain = ask(broker, 8, topics=named("a"))
    assert (plain.cluster_authorized_operations, plain.topics[0].topic_authorized_operations) == (
        NEVER,
        NEVER,
    )
    asked = ask(
        broker,
        8,
        topics=named("a"),
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert (asked.cluster_authorized_operations, asked.topics[0].topic_authorized_operations) == (8096, 3576)
    later = ask(broker, 11, topics=named("a"), include_topic_authorized_operations=True)
    assert (later.cluster_authorized_operations, later.topics[0].topic_authorized_operations) == (NEVER, 3576)
