"""New offsets: the strategies, on a scripted broker whose partitions hold offsets 10 to 20."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.cli.group_errors import Failed, Refused
from ottla.cli.offset_strategies import Strategies, check_places, parse_places, topic_places
from ottla.client import KafkaClient
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.unit.ottla.scripted_broker import ScriptedBroker

START, END = 10, 20
OF_TIME = {-2: START, -1: END, 1000: 15}
A, B = ("t", 0), ("t", 1)


def answer(request: m.Message) -> m.Message:
    if isinstance(request, m.MetadataRequest):
        return metadata(request)
    assert isinstance(request, m.ListOffsetsRequest)
    return m.ListOffsetsResponse(
        topics=[
            m.ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    m.ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, offset=OF_TIME.get(each.timestamp, -1)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def metadata(request: m.MetadataRequest) -> m.MetadataResponse:
    return m.MetadataResponse(
        brokers=[m.MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=PORT[0])],
        topics=[
            m.MetadataResponse.MetadataResponseTopic(
                name=topic.name,
                error_code=0 if topic.name == "t" else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                partitions=[
                    m.MetadataResponse.MetadataResponsePartition(
                        partition_index=index, leader_id=-1 if index == 2 else 1
                    )
                    for index in range(3)
                ]
                if topic.name == "t"
                else [],
            )
            for topic in request.topics or ()
        ],
    )


PORT = [0]


@pytest.fixture
def client() -> Iterator[KafkaClient]:
    versions = {ApiKey.METADATA: (0, 9), ApiKey.LIST_OFFSETS: (1, 5)}
    with ScriptedBroker(answer, versions) as broker:
        PORT[0] = broker.port
        with KafkaClient(broker.address) as connected:
            connected.nodes[1] = ("127.0.0.1", broker.port)
            connected._connections[1] = connected._connections[-1]
            yield connected


@pytest.fixture
def strategies(client) -> Strategies:
    return Strategies(client, 1.0)


def test_ends_and_times_come_from_the_log(strategies, capsys) -> None:
    assert strategies.earliest([A, B]) == {A: START, B: START}
    assert strategies.latest([A]) == {A: END}
    assert strategies.at_time([A], 1000) == {A: 15}
    assert capsys.readouterr().out == ""


def test_a_partition_without_a_record_that_young_gets_its_end(strategies, capsys) -> None:
    assert strategies.at_time([B], 5000) == {B: END}
    assert capsys.readouterr().out == (
        "\nWarn: Partition 1 from topic t is empty. Falling back to latest known offset.\n"
    )


def test_wanted_offsets_stay_inside_the_log(strategies, capsys) -> None:
    assert strategies.inside({A: 5, B: 99}) == {A: START, B: END}
    assert strategies.inside({A: 10, B: 20}) == {A: 10, B: 20}
    assert capsys.readouterr().err.splitlines() == [
        "WARN New offset (5) is lower than earliest offset for topic partition t-0. Value will be set to 10.",
        "WARN New offset (99) is higher than latest offset for topic partition t-1. Value will be set to 20.",
    ]


def test_committed_offsets_are_shifted_or_kept(strategies) -> None:
    assert strategies.shifted([A, B], -3, {A: 15, B: 11}) == {A: 12, B: START}
    assert strategies.current([A, B], {A: 15}) == {A: 15, B: END}
    with pytest.raises(Refused, match="Cannot shift offset for partition t-1"):
        strategies.shifted([A, B], 1, {A: 15})


def test_partitions_are_named_one_by_one_or_by_topic(client) -> None:
    assert topic_places(client, ["t:1", "t"]) == [("t", 1), ("t", 0), ("t", 2)]
    with pytest.raises(Failed, match="does not host this topic-partition"):
        topic_places(client, ["missing"])


def test_partitions_must_exist_and_have_a_leader(client) -> None:
    check_places(client, [A, B])
    check_places(client, [])
    for places, complaint in (
        ([A, ("t", 7)], 'The partitions "t-7" do not exist'),
        ([("t", 2)], 'The partitions "t-2" have no leader'),
        ([("missing", 0)], "ExecutionException: .*UnknownTopicOrPartitionException"),
    ):
        with pytest.raises(Failed, match=complaint):
            check_places(client, places)


@pytest.mark.parametrize("text", ["t:", "t:0:1", "t:x", "t:0,,1"])
def test_what_names_no_partitions_is_refused(text) -> None:
    with pytest.raises(Refused, match="Invalid"):
        parse_places(text)
