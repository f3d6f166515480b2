"""A broker with a coordinator for share groups, and their requests, for group "g"."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import coordinate

GROUP = "g"


@contextmanager
def share_broker(path: Path) -> Iterator[HandlerBroker]:
    """With topic "t" of two partitions."""
    with HandlerBroker(path, {"group.share.assignment.interval.ms": "0"}) as broker:
        coordinate(broker)
        broker.runner.run(broker.ctx.share_state.create_topic())
        broker.create("t", partitions=2)
        yield broker


def turn_off(broker: HandlerBroker) -> None:
    """The feature share.version is at level 0."""
    broker.ctx.share_data.enabled = lambda: False


def join(broker: HandlerBroker, member_id: str = "a", **fields: Any) -> Any:
    request = m.ShareGroupHeartbeatRequest(
        **{"group_id": GROUP, "member_id": member_id, "subscribed_topic_names": ["t"], **fields}
    )
    return broker.call(request, 1)


def alter(broker: HandlerBroker, topic: str = "t", **offsets: int) -> Any:
    """Partitions are given as p0=5."""
    request = m.AlterShareGroupOffsetsRequest
    partitions = [
        request.AlterShareGroupOffsetsRequestPartition(partition_index=int(name[1:]), start_offset=offset)
        for name, offset in offsets.items()
    ]
    asked = request.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
    return broker.call(request(group_id=GROUP, topics=[asked]), 0)


def delete(broker: HandlerBroker, *topics: str) -> Any:
    request = m.DeleteShareGroupOffsetsRequest
    asked = [request.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
    return broker.call(request(group_id=GROUP, topics=asked), 0)


def describe(broker: HandlerBroker, version: int = 1, **topics: list[int]) -> Any:
    """All topics unless some are named."""
    request = m.DescribeShareGroupOffsetsRequest
    asked = [
        request.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
        for name, partitions in topics.items()
    ]
    group = request.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=asked or None)
    [found] = broker.call(request(groups=[group]), version).groups
    return found


def rows(group: Any) -> dict[tuple[str, int], tuple[int, int]]:
    """Start offset and lag."""
    return {
        (topic.topic_name, row.partition_index): (row.start_offset, row.lag)
        for topic in group.topics
        for row in topic.partitions
    }
