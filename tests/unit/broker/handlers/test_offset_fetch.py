"""OffsetFetch: the shapes of its versions, and where each has its errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, commit, coordinate

TOPIC = "t"
Fetch = m.OffsetFetchRequest


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        running.create(TOPIC)
        coordinate(running)
        running.call(commit(TOPIC, 7), 9)
        yield running


def asked(broker: HandlerBroker, version: int, *groups: str, everything: bool = False, **fields: Any) -> Any:
    """Partitions 0 and 1 of TOPIC and 0 of a topic that is not there, or everything."""
    named = {TOPIC: [0, 1], "unknown": [0]}
    if version < 8:
        topics = [Fetch.OffsetFetchRequestTopic(name=name, partition_indexes=i) for name, i in named.items()]
        [group] = groups
        return broker.call(Fetch(group_id=group, topics=None if everything else topics, **fields), version)
    more = [Fetch.OffsetFetchRequestTopics(name=name, partition_indexes=i) for name, i in named.items()]
    wanted = [
        Fetch.OffsetFetchRequestGroup(group_id=group, topics=None if everything else more) for group in groups
    ]
    return broker.call(Fetch(groups=wanted, **fields), version)


def shown(topics: list[Any]) -> list[tuple[str, int, int, str | None, int]]:
    return [
        (topic.name, p.partition_index, p.committed_offset, p.metadata, p.error_code)
        for topic in topics
        for p in topic.partitions
    ]


FOUND = [(TOPIC, 0, 7, "here", 0), (TOPIC, 1, -1, "", 0), ("unknown", 0, -1, "", 0)]
NOTHING = [(topic, partition, -1, "", 0) for topic, partition, *_ in FOUND]


@pytest.mark.parametrize("version", range(10))
def test_every_version_fetches(broker: HandlerBroker, version: int) -> None:
    answer = asked(broker, version, GROUP)
    assert shown(answer.topics if version < 8 else answer.groups[0].topics) == FOUND
    answer = asked(broker, version, "absent")
    assert shown(answer.topics if version < 8 else answer.groups[0].topics) == NOTHING


@pytest.mark.parametrize("version", range(2, 10))
def test_no_list_means_everything(broker: HandlerBroker, version: int) -> None:
    answer = asked(broker, version, GROUP, everything=True)
    assert shown(answer.topics if version < 8 else answer.groups[0].topics) == FOUND[:1]


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("require_stable", [False, True])
def test_many_groups(broker: HandlerBroker, version: int, require_stable: bool) -> None:
    answer = asked(broker, version, GROUP, "absent", GROUP, require_stable=require_stable)
    assert [(group.group_id, shown(group.topics)) for group in answer.groups] == [
        (GROUP, FOUND),
        ("absent", NOTHING),
        (GROUP, FOUND),
    ]
    assert asked(broker, version).groups == []


def test_what_is_asked_for_again_and_again_is_not_told_each_time(broker: HandlerBroker) -> None:
    answer = asked(broker, 8, *[GROUP] * 500)
    assert [group.error_code for group in answer.groups] == [0] * 2 + [ErrorCode.INVALID_REQUEST] * 498
    topics = [Fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0] * 500)] * 10
    [topic] = broker.call(Fetch(group_id=GROUP, topics=topics), 7).topics
    assert [each.committed_offset for each in topic.partitions] == [7]
    wanted = Fetch.OffsetFetchRequestGroup(
        group_id=GROUP, topics=[Fetch.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0] * 500)]
    )
    [group] = broker.call(Fetch(groups=[wanted]), 9).groups
    assert len(group.topics[0].partitions) == 1


def test_version_10_names_topics_by_id(broker: HandlerBroker) -> None:
    topic_id, unknown = broker.ctx.image.topics[TOPIC].topic_id, b"\1" * 16
    topics = [
        Fetch.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in (unknown, topic_id)
    ]
    wanted = [Fetch.OffsetFetchRequestGroup(group_id=GROUP, topics=each) for each in (topics, None)]
    named, everything = broker.call(Fetch(groups=wanted), 10).groups
    found = {topic.topic_id: topic.partitions[0] for topic in named.topics}
    assert (found[topic_id].committed_offset, found[topic_id].error_code) == (7, 0)
    assert (found[unknown].committed_offset, found[unknown].error_code) == (-1, ErrorCode.UNKNOWN_TOPIC_ID)
    assert [topic.topic_id for topic in everything.topics] == [topic_id]


@pytest.mark.parametrize("version", range(11))
def test_without_a_coordinator_the_error_stands_where_the_version_has_room(
    tmp_path: Path, version: int
) -> None:
    error = ErrorCode.NOT_COORDINATOR
    with HandlerBroker(tmp_path / "other") as broker:
        answer = asked(broker, version, GROUP)
    if version < 2:
        assert [each[-1] for each in shown(answer.topics)] == [error] * len(FOUND)
    elif version < 8:
        assert (answer.error_code, answer.topics) == (error, [])
    else:
        assert [(group.error_code, group.topics) for group in answer.groups] == [(error, [])]
