"""First, last and timed offsets of partitions, and which partitions there are.

LATEST is the end of what a consumer may read without transactions in mind (the high watermark): offsets of
transaction markers count in it as they do in a committed offset.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from ottla.client import KafkaClient, check
from ottla.groups.admin import Place
from protocol import messages as m
from protocol.errors import ErrorCode

EARLIEST, LATEST = -2, -1
RETRY_PAUSE_S = 0.1
NO_LEADER = -1


def partition_leaders(client: KafkaClient, topics: Iterable[str]) -> dict[Place, int]:
    """All partitions of topics with their leaders' ids, -1 for none; ClientError for a topic that is not."""
    names = list(dict.fromkeys(topics))
    if not names:
        return {}
    found = {}
    for topic in client.metadata(names):
        if topic.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            check(topic.error_code)
        for each in topic.partitions:
            found[topic.name or "", each.partition_index] = each.leader_id
    return found


def list_offsets(
    client: KafkaClient, places: Sequence[Place], timestamp: int, timeout_s: float
) -> dict[Place, int]:
    """Each partition's offset for a timestamp (or EARLIEST, LATEST); -1 where no record is that young.

    Asks the leaders, again where one has moved, for timeout_s at most; then ClientError.
    """
    deadline = time.monotonic() + timeout_s
    found: dict[Place, int] = {}
    left = list(places)
    while left:
        moved: dict[Place, ErrorCode] = {}
        for node, topics in client.by_leader(left).items():
            response: m.ListOffsetsResponse = client.call(_request(topics, timestamp, timeout_s), node)
            for topic in response.topics:
                for each in topic.partitions:
                    error = ErrorCode(each.error_code)
                    if error.retriable:
                        client.forget_leader(topic.name, each.partition_index)
                        moved[topic.name, each.partition_index] = error
                        continue
                    check(error)
                    found[topic.name, each.partition_index] = (
                        each.old_style_offsets[0] if each.old_style_offsets else each.offset
                    )
        left = list(moved)
        if left:
            if time.monotonic() >= deadline:
                check(moved[left[0]])
            time.sleep(RETRY_PAUSE_S)
    return found


def _request(topics: Mapping[str, list[int]], timestamp: int, timeout_s: float) -> m.ListOffsetsRequest:
    return m.ListOffsetsRequest(
        replica_id=-1,
        timeout_ms=int(timeout_s * 1000),
        topics=[
            m.ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    m.ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=-1, timestamp=timestamp, max_num_offsets=1
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in topics.items()
        ],
    )
