"""CreateTopics: protocol.md 4.4, CT2 to CT17."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol import messages as m
from protocol.uuids import ZERO_UUID
from tests.support.handler_broker import HandlerBroker

Request = m.CreateTopicsRequest
Topic = Request.CreatableTopic
Assignment = Request.CreatableReplicaAssignment
Setting = Request.CreatableTopicConfig
Result = m.CreateTopicsResponse.CreatableTopicResult


def topic(name: str = "t", partitions: int = 1, factor: int = 1, **fields: object) -> object:
    return Topic(name=name, num_partitions=partitions, replication_factor=factor, **fields)


def create(
    broker: HandlerBroker, *topics: object, version: int = 7, timeout_ms: int = 1000, check: bool = False
) -> list[Result]:
    request = Request(topics=list(topics), timeout_ms=timeout_ms, validate_only=check)
    return broker.call(request, version).topics


@pytest.mark.parametrize("version", range(8))
def test_a_topic_at_every_version(broker: HandlerBroker, version: int) -> None:
    (result,) = create(broker, topic(partitions=2), version=version)
    assert (result.name, result.error_code, result.error_message or None) == ("t", 0, None)
    assert (result.topic_id != ZERO_UUID) == (version >= 7)
    counts = (2, 1) if version >= 5 else (-1, -1)
    assert (result.num_partitions, result.replication_factor) == counts
    assert len(result.configs or []) == (37 if version >= 5 else 0)
    assert len(broker.ctx.image.topics["t"].partitions) == 2


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (topic(partitions=0), 37, "Number of partitions was set to an invalid non-positive value."),
        (topic(factor=0), 38, "Replication factor must be larger than 0, or -1 to use the default value."),
        (topic(factor=2), 38, "Unable to replicate the partition 2 time(s)"),
        (topic("a b"), 17, "Topic name is invalid: 'a b' contains one or more characters"),
        (topic(""), 17, "the empty string is not allowed"),
        (topic(".."), 17, "'..' is not allowed"),
        (topic("x" * 250), 17, "is longer than the max allowed length 249"),
        (topic("__cluster_metadata"), 42, "is prohibited"),
        (topic(partitions=100_001), 44, "Excessively large number of partitions per request."),
        (topic(configs=[Setting(name="foo", value="1")]), 40, "Unknown topic config name: foo"),
        (topic(configs=[Setting(name="retention.ms", value="x")]), 40, "Not a number of type LONG"),
        (topic(configs=[Setting(name="retention.ms", value=None)]), 40, "Null value not supported"),
        (
            topic(assignments=[Assignment(partition_index=0, broker_ids=[1])]),
            42,
            "A manual partition assignment was specified",
        ),
        (
            topic(partitions=-1, factor=-1, assignments=[Assignment(partition_index=1, broker_ids=[1])]),
            39,
            "consecutive 0-based",
        ),
        (
            topic(partitions=-1, factor=-1, assignments=[Assignment(partition_index=0, broker_ids=[1, 1])]),
            39,
            "more than once",
        ),
        (
            topic(partitions=-1, factor=-1, assignments=[Assignment(partition_index=0, broker_ids=[9])]),
            39,
            "no such broker",
        ),
        (
            topic(partitions=-1, factor=-1, assignments=[Assignment(partition_index=0, broker_ids=[])]),
            39,
            "empty replica list",
        ),
    ],
)
def test_what_is_refused(broker: HandlerBroker, wanted: object, error: int, message: str) -> None:
    (result,) = create(broker, wanted)
    assert result.error_code == error
    assert message in (result.error_message or "")
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])
    assert broker.ctx.image.topics == {}
    (checked,) = create(broker, wanted, check=True)
    assert (checked.error_code, checked.error_message) == (error, result.error_message)


def test_ct2_ct3_ct5_names_that_are_taken(broker: HandlerBroker) -> None:
    broker.create("a.b")
    results = create(broker, topic("a.b"), topic("a_b"), topic("twice"), topic("twice"), topic("fine"))
    assert {result.name: result.error_code for result in results} == {
        "a.b": 36,
        "a_b": 17,
        "twice": 42,
        "fine": 0,
    }
    assert len(results) == 4
    assert results[0].error_message == "Topic 'a.b' already exists."
    assert results[1].error_message == "Topic 'a_b' collides with existing topic: a.b"


def test_ct7_defaults_of_the_broker(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"num.partitions": "3"}) as broker:
        (result,) = create(broker, topic(partitions=-1, factor=-1))
        assert (result.num_partitions, result.replication_factor) == (3, 1)


def test_ct10_an_assignment(broker: HandlerBroker) -> None:
    wanted = topic(
        partitions=-1,
        factor=-1,
        assignments=[Assignment(partition_index=number, broker_ids=[1]) for number in (1, 0)],
    )
    (result,) = create(broker, wanted)
    assert (result.error_code, result.num_partitions) == (0, 2)


def test_ct12_a_check_writes_nothing(broker: HandlerBroker) -> None:
    (result,) = create(broker, topic(configs=[Setting(name="retention.ms", value="5")]), check=True)
    assert (result.error_code, result.num_partitions) == (0, 1)
    assert result.topic_id != ZERO_UUID
    assert broker.ctx.image.topics == {}


def test_ct13_without_time_nothing_is_made_and_answered_7(broker: HandlerBroker) -> None:
    (result,) = create(broker, topic(), timeout_ms=0)
    assert result.error_code == 7
    assert broker.ctx.image.topics == {}


def test_ct14_settings_with_their_sources(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"log.retention.hours": "100"}) as broker:
        (result,) = create(broker, topic(configs=[Setting(name="max.message.bytes", value="5")]))
        found = {each.name: (each.value, each.config_source) for each in result.configs or []}
    assert found["max.message.bytes"] == ("5", 1)
    assert found["retention.ms"] == ("360000000", 4)
    assert found["cleanup.policy"] == ("delete", 5)
    assert not any(each.read_only or each.is_sensitive for each in result.configs or [])


def test_the_settings_reach_the_log(broker: HandlerBroker) -> None:
    broker.create("t", configs={"max.message.bytes": "1000", "cleanup.policy": "compact"})
    found = broker.ctx.replicas.get("t", 0)
    assert found is not None
    assert found.log.config.max_message_bytes == 1000
    assert found.log.config.compacted


def test_a_request_for_very_many_topics_is_answered_for_each(broker: HandlerBroker) -> None:
    names = [f"t{number}" for number in range(120)]
    own = [Setting(name="retention.ms", value="5")]
    results = create(
        broker, *(topic(name, 3, configs=own if number % 2 else []) for number, name in enumerate(names))
    )
    assert [(result.name, result.error_code, result.num_partitions) for result in results] == [
        (name, 0, 3) for name in names
    ]
    retention = [
        next(each.value for each in result.configs if each.name == "retention.ms") for result in results
    ]
    assert retention == ["604800000", "5"] * 60
    assert len(broker.ctx.replicas) == 360
    assert broker.ctx.replicas.get("t1", 0).log.config.retention_ms == 5
