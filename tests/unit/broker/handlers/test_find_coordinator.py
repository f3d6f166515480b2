"""FindCoordinator: groups and share partitions for real, transactional ids not yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.handlers.find_coordinator import share_key
from coordinator.placement import partition_for
from protocol import messages as m
from protocol.uuids import uuid_to_text
from replication.metadata.configs import ConfigResource, ConfigType
from tests.support.handler_broker import HandlerBroker

TOPIC = "__consumer_offsets"
NOWHERE = (-1, "", -1)


def ask(
    broker: HandlerBroker, version: int, *keys: str, key_type: int = 0, listener: str = "PLAINTEXT"
) -> list[m.FindCoordinatorResponse.Coordinator]:
    """The answers in the shape of version 4."""
    if version >= 4:
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        return list(broker.call(request, version, listener).coordinators)
    [key] = keys
    answer = broker.call(m.FindCoordinatorRequest(key_type=key_type, key=key), version, listener)
    return [
        m.FindCoordinatorResponse.Coordinator(
            key=key,
            node_id=answer.node_id,
            host=answer.host,
            port=answer.port,
            error_code=answer.error_code,
            error_message=answer.error_message,
        )
    ]


@pytest.mark.parametrize("version", range(7))
def test_the_first_answer_names_the_coordinator_of_a_group(broker: HandlerBroker, version: int) -> None:
    keys = ["a", "b"] if version >= 4 else ["a"]
    found = ask(broker, version, *keys)
    assert [(one.key, one.error_code, one.node_id, one.host, one.port) for one in found] == [
        (key, 0, 1, "broker.test", 9092) for key in keys
    ]
    if 1 <= version < 4:
        assert found[0].error_message == "NONE"
    topic = broker.ctx.image.topics[TOPIC]
    assert len(topic.partitions) == 50
    partition = partition_for("a", 50)
    assert partition in broker.ctx.groups.manager().runtime.active_partitions()


def test_the_address_is_that_of_the_listener_that_was_asked(broker: HandlerBroker) -> None:
    [found] = ask(broker, 4, "g", listener="EXTERNAL")
    assert (found.node_id, found.host, found.port) == (1, "public.test", 19092)
    [found] = ask(broker, 4, "g", listener="INTERNAL")
    assert found.error_code == 15
    assert (found.node_id, found.host, found.port) == NOWHERE


def test_the_topic_is_made_with_kafkas_settings(tmp_path: Path) -> None:
    more = {"offsets.topic.num.partitions": "3", "offsets.topic.segment.bytes": "2000000"}
    with HandlerBroker(tmp_path, more) as broker:
        ask(broker, 3, "g")
        assert len(broker.ctx.image.topics[TOPIC].partitions) == 3
        assert broker.ctx.image.overrides(ConfigResource(ConfigType.TOPIC, TOPIC)) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "2000000",
        }


def test_no_topic_is_made_for_other_keys_or_for_none(broker: HandlerBroker) -> None:
    ask(broker, 3, "t", key_type=1)
    assert ask(broker, 4) == []
    assert TOPIC not in broker.ctx.image.topics


@pytest.mark.parametrize("version", range(7))
def test_too_few_brokers_for_the_topic(tmp_path: Path, version: int) -> None:
    with HandlerBroker(tmp_path, {"offsets.topic.replication.factor": "3"}) as broker:
        [found] = ask(broker, version, "g")
        assert (found.error_code, found.node_id, found.host, found.port) == (15, *NOWHERE)
        assert TOPIC not in broker.ctx.image.topics


@pytest.mark.parametrize(
    ("key_type", "version", "error"),
    [(3, 6, 42), (-1, 6, 42), (2, 5, 42), (2, 6, 42)],
)
def test_other_key_types(broker: HandlerBroker, key_type: int, version: int, error: int) -> None:
    [found] = ask(broker, version, "a", key_type=key_type)
    assert (found.error_code, found.node_id, found.host, found.port) == (error, *NOWHERE)


def test_the_coordinator_of_a_share_partition_leads_its_partition_of_the_state(broker: HandlerBroker) -> None:
    text = uuid_to_text(bytes(range(16)))
    keys = [f"g:{text}:0", f"g:1:{text}:7", "g", f"g:{text}:+7:"]
    found = ask(broker, 6, *keys, key_type=2)
    assert [(one.key, one.error_code, one.node_id) for one in found] == [
        (keys[0], 0, 1),
        (keys[1], 0, 1),
        (keys[2], 42, -1),
        (keys[3], 0, 1),
    ]
    topic = broker.ctx.image.topics["__share_group_state"]
    assert len(topic.partitions) == 50
    assert len(broker.ctx.share_state.manager().runtime.active_partitions()) == 50
    assert TOPIC not in broker.ctx.image.topics


def test_malformed_keys_make_no_topic(broker: HandlerBroker) -> None:
    [found] = ask(broker, 6, "g:x:0", key_type=2)
    assert (found.error_code, found.error_message) == (42, "")
    assert "__share_group_state" not in broker.ctx.image.topics


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:+07", "g:AAAAAAAAAAAAAAAAAAAAAQ:7"),
        ("a:b:AAAAAAAAAAAAAAAAAAAAAQ==:-1::", "a:b:AAAAAAAAAAAAAAAAAAAAAQ:-1"),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:", None),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:2147483648", None),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:²", None),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:" + "1" * 5000, None),
        (" :AAAAAAAAAAAAAAAAAAAAAQ:1", None),
        ("", None),
        (":::", None),
    ],
)
def test_share_keys_are_hashed_in_one_way_of_writing(key: str, hashed: str | None) -> None:
    assert share_key(key) == hashed
