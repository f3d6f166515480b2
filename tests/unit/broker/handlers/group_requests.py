"""Requests about groups, and a group with one member, for tests of their handlers."""

from __future__ import annotations

from typing import Any

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

GROUP = "g"
NO_DELAY = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}


def coordinate(broker: HandlerBroker) -> None:
    """Have the topic of groups made and loaded."""
    broker.call(m.FindCoordinatorRequest(key=GROUP), 3)


def join(member_id: str = "", **fields: Any) -> m.JoinGroupRequest:
    """A JoinGroup of a consumer."""
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"meta")
    known = {
        "group_id": GROUP,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [protocol],
    }
    return m.JoinGroupRequest(**{**known, **fields})


def sync(member_id: str, generation: int = 1, assignment: bytes | None = b"part") -> m.SyncGroupRequest:
    """A SyncGroup, which brings the member's own assignment unless that is None."""
    entry = m.SyncGroupRequest.SyncGroupRequestAssignment
    given = [] if assignment is None else [entry(member_id=member_id, assignment=assignment)]
    return m.SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=given,
    )


def settle(broker: HandlerBroker) -> str:
    """A Stable group of one member; its id."""
    coordinate(broker)
    joined = broker.call(join(), 3)
    assert joined.error_code == 0, joined
    assert broker.call(sync(joined.member_id), 5).error_code == 0
    return str(joined.member_id)


def commit(topic: str, offset: int, **fields: Any) -> m.OffsetCommitRequest:
    """An OffsetCommit for partition 0 by nobody in particular."""
    request = m.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata="here"
    )
    topics = [request.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    return request(**{"group_id": GROUP, "topics": topics, **fields})


def fetched(broker: HandlerBroker, topic: str, group: str = GROUP) -> int:
    """What a group has committed for partition 0; -1 for nothing."""
    request = m.OffsetFetchRequest
    wanted = [request.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    answer = broker.call(request(group_id=group, topics=wanted), 7)
    assert answer.error_code == 0
    return int(answer.topics[0].partitions[0].committed_offset)
