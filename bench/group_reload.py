"""A start with many committed offsets: until every group is served again, and how long that held up the loop.

Each side is a broker of its own, so one that somebody else started is left out. The offsets are written by
plain commits, all under keys of their own, so compaction has nothing to remove.
"""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from bench import brokers as made
from bench.brokers import STALL_LINE, Broker
from bench.rounds import Plan, Row, Sample, measure
from ottla.client import ClientError, KafkaClient
from protocol import messages as m

TOPIC = "bench-reload"
PARTITIONS = 1_000  # of each group: one commit's batch has to fit into message.max.bytes
GROUPS = 1_000
LIMIT_SECONDS = 300.0
_FETCH_VERSION, _COMMIT_VERSION = 8, 8


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """One life of each broker gives both figures; the loop is ours alone."""
    kinds = [broker.name for broker in brokers if broker.process is not None]
    groups = int(GROUPS * plan.scale)
    label = f"start with {groups * PARTITIONS:,} committed offsets, until all groups are served"
    stalls: dict[str, list[Sample]] = {}

    def live(kind: str) -> Callable[[], Sample]:
        def run() -> Sample:
            seconds, stall_ms = one_life(kind, groups)
            if stall_ms is not None:
                stalls.setdefault(kind, []).append(Sample(stall_ms))
            return Sample(seconds)

        return run

    row = Row("Loading groups", label, "s", lower_is_better=True, digits=2)
    yield measure(row, {kind: live(kind) for kind in kinds}, rounds=1)
    if stalls:
        yield Row("Loading groups", "the loop held up at most", "ms", lower_is_better=True, samples=stalls)


def one_life(kind: str, groups: int) -> tuple[float, int | None]:
    """Fill, stop, start and wait: seconds, and the longest stall in ms where the broker tells one."""
    broker = made.make(kind)
    assert broker.process is not None
    try:
        broker.process.start()
        broker.create_topic(TOPIC, PARTITIONS)
        _fill(broker, groups)
        broker.process.stop()
        seconds = _start_to_served(broker, groups)
        broker.process.stop()
        told = re.findall(STALL_LINE, broker.process.output_path.read_text(errors="replace"))
        return seconds, int(told[-1]) if told else None
    finally:
        broker.process.stop()
        shutil.rmtree(broker.process.directory, ignore_errors=True)


def _name(group: int) -> str:
    return f"bench-reload-{group:04d}"


def _fill(broker: Broker, groups: int) -> None:
    of_topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    of_partition = m.OffsetCommitRequest.OffsetCommitRequestPartition
    places = [of_partition(partition_index=n, committed_offset=n) for n in range(PARTITIONS)]
    topics = [of_topic(name=TOPIC, partitions=places)]
    with KafkaClient(broker.bootstrap, "bench", timeout_s=60) as client:
        for group in range(groups):
            request = m.OffsetCommitRequest(
                group_id=_name(group), generation_id_or_member_epoch=-1, topics=topics
            )
            _until(lambda r=request: _committed(client, r), "a commit")


def _committed(client: KafkaClient, request: m.OffsetCommitRequest) -> bool:
    answer = client.call(request, version=_COMMIT_VERSION)
    errors = {each.error_code for topic in answer.topics for each in topic.partitions}
    if errors != {0}:
        client.call(m.FindCoordinatorRequest(coordinator_keys=[request.group_id]), version=4)
    return errors == {0}


def _start_to_served(broker: Broker, groups: int) -> float:
    """Seconds from the start of the process until every group's offsets are there."""
    assert broker.process is not None
    problems: list[RuntimeError] = []

    def start() -> None:
        try:
            broker.process.start()  # type: ignore[union-attr]
        except RuntimeError as error:
            problems.append(error)

    starter = threading.Thread(target=start)
    begin = time.perf_counter()
    starter.start()
    missing = [_name(group) for group in range(groups)]

    def served() -> bool:
        if problems:
            raise problems[0]
        try:
            with KafkaClient(broker.bootstrap, "bench", timeout_s=60) as client:
                while missing and _has_offsets(client, missing[-1]):
                    missing.pop()
        except ClientError:
            pass
        return not missing

    _until(served, "all groups to be served")
    took = time.perf_counter() - begin
    starter.join()
    return took


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
