"""A start with many committed offsets: until every group is served again, and how long that held up the loop.

Each side is a broker of its own, so one that somebody else started is left out. The offsets are written by
plain commits, all under keys of their own, so compaction has nothing to remove.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench.brokers import Broker
from bench.rounds import Plan, Row
from bench.starting import second_lives
from ottla.client import KafkaClient
from protocol import messages as m

TOPIC = "bench-reload"
PARTITIONS = 1_000  # of each group: one commit's batch has to fit into message.max.bytes
GROUPS = 1_000
LIMIT_SECONDS = 300.0
_FETCH_VERSION, _COMMIT_VERSION = 8, 8


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """One life of each broker gives both figures; the loop is ours alone."""
    groups = int(GROUPS * plan.scale)
    label = f"start with {groups * PARTITIONS:,} committed offsets, until all groups are served"
    row = Row("Loading groups", label, "s", lower_is_better=True, digits=2)
    yield from second_lives(row, brokers, lambda broker: fill(broker, groups), look, LIMIT_SECONDS)


def _name(group: int) -> str:
    return f"bench-reload-{group:04d}"


def fill(broker: Broker, groups: int) -> list[str]:
    broker.create_topic(TOPIC, PARTITIONS)
    of_topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    of_partition = m.OffsetCommitRequest.OffsetCommitRequestPartition
    places = [of_partition(partition_index=n, committed_offset=n) for n in range(PARTITIONS)]
    topics = [of_topic(name=TOPIC, partitions=places)]
    with KafkaClient(broker.bootstrap, "bench", timeout_s=60) as client:
        for group in range(groups):
            request = m.OffsetCommitRequest(
                group_id=_name(group), generation_id_or_member_epoch=-1, topics=topics
            )
            _until(partial(_committed, client, request), "a commit")
    return [_name(group) for group in range(groups)]


def _committed(client: KafkaClient, request: m.OffsetCommitRequest) -> bool:
    answer = client.call(request, version=_COMMIT_VERSION)
    errors = {each.error_code for topic in answer.topics for each in topic.partitions}
    if errors != {0}:
        client.call(m.FindCoordinatorRequest(coordinator_keys=[request.group_id]), version=4)
    return errors == {0}


def look(broker: Broker, missing: list[str]) -> None:
    with KafkaClient(broker.bootstrap, "bench", timeout_s=60) as client:
        while missing and _has_offsets(client, missing[-1]):
            missing.pop()


def _has_offsets(client: KafkaClient, group: str) -> bool:
    asked = m.OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[PARTITIONS - 1])
    request = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[asked])
    [answer] = client.call(m.OffsetFetchRequest(groups=[request]), version=_FETCH_VERSION).groups
    if answer.error_code:
        return False
    found = answer.topics[0].partitions[0].committed_offset
    if found != PARTITIONS - 1:
        raise RuntimeError(f"{group} has committed {found}")
    return True


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.perf_counter() + LIMIT_SECONDS
    while not condition():
        if time.perf_counter() > deadline:
            raise RuntimeError(f"waited {LIMIT_SECONDS:g} s for {what}")
        time.sleep(0.01)
