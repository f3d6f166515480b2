"""Requests about groups, as attackers and as the tests' own checks send them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from protocol import messages as m
from tests.hostile.victim import Victim
from tests.support.wire_client import WireClient

TOPIC = "t"
PARTITIONS = 100
SESSION_MS = 6000
LONG_SESSION_MS = 1_800_000


def with_groups(victim: Victim) -> None:
    """A topic, and a coordinator that has begun."""
    with victim.wire() as wire:
        wire.create_topic(TOPIC, partitions=PARTITIONS)
        assert wire.send(m.FindCoordinatorRequest(key="g"), 3).error_code == 0


def committing(
    group_id: str, offsets: dict[int, int], metadata: str = "", topic: str = TOPIC
) -> m.OffsetCommitRequest:
    """A commit of who is no member; partition to offset."""
    request = m.OffsetCommitRequest
    partitions = [
        request.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=metadata
        )
        for index, offset in offsets.items()
    ]
    topics = [request.OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    return request(group_id=group_id, generation_id_or_member_epoch=-1, topics=topics)


def commit(wire: WireClient, group_id: str, offsets: dict[int, int], metadata: str = "") -> list[int]:
    """The error of each partition."""
    [topic] = wire.send(committing(group_id, offsets, metadata), 8).topics
    return [each.error_code for each in topic.partitions]


def committed(wire: WireClient, group_id: str) -> dict[int, int]:
    """Everything that a group has committed of the topic."""
    request = m.OffsetFetchRequest
    wanted = request.OffsetFetchRequestGroup(group_id=group_id, topics=None)
    [group] = wire.send(request(groups=[wanted]), 8).groups
    assert group.error_code == 0, group
    return {
        each.partition_index: each.committed_offset for topic in group.topics for each in topic.partitions
    }


def joining(
    group_id: str, protocols: Iterable[tuple[str, bytes]], member_id: str = "", session_ms: int = SESSION_MS
) -> m.JoinGroupRequest:
    """A JoinGroup of protocol type consumer."""
    request = m.JoinGroupRequest
    return request(
        group_id=group_id,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[request.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
    )


def join_and_sync(wire: WireClient, group_id: str, metadata: bytes, assignment: bytes = b"a") -> Any:
    """A group of one classic member, who stays for half an hour; the answer of its JoinGroup."""
    joined = wire.send(joining(group_id, [("range", metadata)], session_ms=LONG_SESSION_MS), 3)
    assert joined.error_code == 0, joined
    request = m.SyncGroupRequest
    given = request.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
    synced = wire.send(
        request(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[given],
        ),
        2,
    )
    assert synced.error_code == 0, synced
    return joined


def subscription(names: Sequence[str]) -> bytes:
    """What a consumer sends as metadata."""
    return b"\0\0" + m.ConsumerProtocolSubscription(topics=list(names)).encode(0)


def beating(
    group_id: str,
    member_id: str,
    names: Sequence[str] | None = None,
    *,
    regex: str | None = None,
    epoch: int = 0,
    owned: Any = None,
) -> m.ConsumerGroupHeartbeatRequest:
    """A ConsumerGroupHeartbeat; at epoch 0 it joins."""
    return m.ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=None if names is None else list(names),
        subscribed_topic_regex=regex,
        topic_partitions=[] if epoch == 0 else owned,
    )
