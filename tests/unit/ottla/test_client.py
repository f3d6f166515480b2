"""The cluster client, against a broker that answers by script."""

from __future__ import annotations

import pytest

from ottla.client import ClientError, KafkaClient, addresses, check
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.unit.ottla.scripted_broker import ScriptedBroker

VERSIONS = {ApiKey.METADATA: (0, 12), ApiKey.CREATE_TOPICS: (2, 7), ApiKey.DELETE_TOPICS: (1, 6)}

Topic = m.MetadataResponse.MetadataResponseTopic
Partition = m.MetadataResponse.MetadataResponsePartition


def metadata(broker: ScriptedBroker, *topics: Topic) -> m.MetadataResponse:
    node = m.MetadataResponse.MetadataResponseBroker(node_id=5, host="127.0.0.1", port=broker.port)
    return m.MetadataResponse(brokers=[node], topics=list(topics))


def led(*leaders: int) -> Topic:
    return Topic(
        name="t",
        partitions=[
            Partition(partition_index=index, leader_id=leader) for index, leader in enumerate(leaders)
        ],
    )


def test_leaders_are_learned_once_and_asked_again_when_forgotten() -> None:
    with (
        ScriptedBroker(lambda request: metadata(broker, led(5, 5)), VERSIONS) as broker,
        KafkaClient(broker.address) as client,
    ):
        assert client.by_leader([("t", 1), ("t", 0)]) == {5: {"t": [1, 0]}}
        asked = len(broker.requests)
        assert client.leader("t", 1) == 5
        assert len(broker.requests) == asked
        client.forget_leader("t", 1)
        assert client.leader("t", 1) == 5
        assert len(broker.requests) == asked + 1


@pytest.mark.parametrize(
    ("partition", "error"), [(1, ErrorCode.LEADER_NOT_AVAILABLE), (2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_a_partition_without_a_leader_is_told_from_one_that_does_not_exist(partition, error) -> None:
    with (
        ScriptedBroker(lambda request: metadata(broker, led(5, -1)), VERSIONS) as broker,
        KafkaClient(broker.address) as client,
        pytest.raises(ClientError) as refused,
    ):
        client.leader("t", partition)
    assert refused.value.error == error


def test_a_topic_that_is_being_created_is_waited_for() -> None:
    answers = [Topic(name="t", error_code=ErrorCode.LEADER_NOT_AVAILABLE), led(5, 5)]
    with (
        ScriptedBroker(lambda request: metadata(broker, answers.pop(0)), VERSIONS) as broker,
        KafkaClient(broker.address) as client,
    ):
        assert client.partitions_of("t", create_missing=True) == [0, 1]


def test_a_topic_that_is_not_there_is_refused_at_once() -> None:
    missing = Topic(name="t", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with ScriptedBroker(lambda request: metadata(broker, missing), VERSIONS) as broker:
        with KafkaClient(broker.address) as client, pytest.raises(ClientError, match="topic 't'"):
            client.partitions_of("t")
        assert len(broker.requests) == 2


def test_topics_are_created_as_asked_and_refusals_carry_the_brokers_words() -> None:
    result = m.CreateTopicsResponse.CreatableTopicResult(
        name="t", error_code=ErrorCode.TOPIC_ALREADY_EXISTS, error_message="Topic 't' already exists."
    )
    answer = m.CreateTopicsResponse(topics=[result])
    with ScriptedBroker(lambda request: answer, VERSIONS) as broker:
        with KafkaClient(broker.address) as client:
            with pytest.raises(ClientError, match=r"^Topic 't' already exists\.$") as refused:
                client.create_topic("t", 3, config={"a": "b"})
            assert refused.value.error == ErrorCode.TOPIC_ALREADY_EXISTS
        (topic,) = broker.requests[-1].topics
        assert (topic.num_partitions, topic.replication_factor) == (3, -1)
        assert [(each.name, each.value) for each in topic.configs] == [("a", "b")]


def test_the_controller_is_found_where_another_broker_was_asked() -> None:
    """Also when it is not there yet: the first broker tells of none, then of one that is none any more, then
    of one that has ended.
    """
    result = m.CreateTopicsResponse.CreatableTopicResult
    controllers = [-1, 5, 7, 6]

    def script(request: m.Message) -> m.Message:
        if isinstance(request, m.MetadataRequest):
            nodes = [
                m.MetadataResponse.MetadataResponseBroker(node_id=node, host="127.0.0.1", port=broker.port)
                for node, broker in ((5, other), (6, controller))
            ]
            nodes.append(m.MetadataResponse.MetadataResponseBroker(node_id=7, host="127.0.0.1", port=1))
            return m.MetadataResponse(brokers=nodes, controller_id=controllers.pop(0))
        return m.CreateTopicsResponse(topics=[result(name="t", error_code=ErrorCode.NOT_CONTROLLER)])

    created = m.CreateTopicsResponse(topics=[result(name="t")])
    with (
        ScriptedBroker(script, VERSIONS) as other,
        ScriptedBroker(lambda request: created, VERSIONS) as controller,
        KafkaClient(other.address) as client,
    ):
        client.create_topic("t")
        assert controllers == []
        assert isinstance(controller.requests[-1], m.CreateTopicsRequest)


def test_the_first_address_that_answers_is_used() -> None:
    with (
        ScriptedBroker(lambda request: metadata(broker), VERSIONS) as broker,
        KafkaClient(f"127.0.0.1:1,{broker.address}") as client,
    ):
        assert client.metadata(None) == []
        assert client.nodes == {5: ("127.0.0.1", broker.port)}
        with pytest.raises(ClientError, match="no broker 6"):
            client.connection(6)


def test_addresses_are_read_as_clients_take_them() -> None:
    assert addresses("a:1, [::1]:9092") == [("a", 1), ("::1", 9092)]
    for wrong in ("", "a", "a:", "a:0", "a:70000", ":1"):
        with pytest.raises(ClientError):
            addresses(wrong)


def test_a_code_becomes_an_error_with_the_best_words_there_are() -> None:
    check(0)
    with pytest.raises(ClientError, match=r"^where: the broker's words$"):
        check(3, "the broker's words", "where")
    with pytest.raises(ClientError, match="does not host"):
        check(3)
