"""One member of a classic group: joins, syncs, beats, commits, leaves.

It gives up all partitions before it joins anew (the eager protocol), as Java's consumer does with its
default assignors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client import KafkaClient
from ottla.groups.admin import Place
from ottla.groups.assignors import ASSIGNORS, Assignment, subscriber, subscription_blob
from ottla.groups.coordinators import RETRY_PAUSE_S
from ottla.groups.descriptions import assigned_places
from ottla.groups.membership import CountPartitions, Membership
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.consumer_blobs import encode_assignment
from protocol.errors import ErrorCode

PROTOCOL_TYPE = "consumer"
ASSIGNMENT_VERSION = 3
NO_GENERATION = -1
FIRST_LEAVE_OF_SEVERAL = 3
PATIENCE_S = 5.0  # beyond what a join may take


@dataclass(slots=True)
class MemberSettings:
    """What a consumer's properties say of its membership; times in ms."""

    group_id: str
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    instance_id: str | None = None
    assignors: tuple[str, ...] = tuple(ASSIGNORS)


class Member(Membership):
    """See the module."""

    keeps = False
    first_generation = NO_GENERATION
    unknown = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    again = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED)

    def __init__(self, client: KafkaClient, settings: MemberSettings) -> None:
        super().__init__(client, settings.group_id, settings.instance_id)
        self.settings = settings

    def _say_farewell(self) -> None:
        """A static member stays in the group."""
        if not self.member_id or self._instance_id is not None:
            return
        version = self._coordinators.version_for(self.group_id, ApiKey.LEAVE_GROUP)
        self._coordinators.ask(self.group_id, self._farewell(version), version)

    def _farewell(self, version: int) -> m.LeaveGroupRequest:
        if version < FIRST_LEAVE_OF_SEVERAL:
            return m.LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        identity = m.LeaveGroupRequest.MemberIdentity(
            member_id=self.member_id, reason="the consumer is being closed"
        )
        return m.LeaveGroupRequest(group_id=self.group_id, members=[identity])

    def _join_once(
        self,
        topics: Sequence[str],
        partition_counts: CountPartitions,
        deadline: float | None,
    ) -> list[Place]:
        request = m.JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                m.JoinGroupRequest.JoinGroupRequestProtocol(
                    name=name, metadata=subscription_blob(topics, name, self.generation)
                )
                for name in self.settings.assignors
            ],
        )
        joined: m.JoinGroupResponse = self._ask_patiently(request, deadline)
        if joined.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = joined.member_id
        self._coordinators.check(self.group_id, joined.error_code)
        self.generation = joined.generation_id
        assigned: Assignment = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            subscribers = [
                subscriber(each.member_id, each.group_instance_id, each.metadata) for each in joined.members
            ]
            wanted = sorted({topic for each in subscribers for topic in each.topics})
            assigned = ASSIGNORS[joined.protocol_name or ""](subscribers, partition_counts(wanted))
        synced: m.SyncGroupResponse = self._ask_patiently(self._sync_request(joined, assigned), deadline)
        self._coordinators.check(self.group_id, synced.error_code)
        return assigned_places(synced.assignment)

    def _sync_request(self, joined: m.JoinGroupResponse, assigned: Assignment) -> m.SyncGroupRequest:
        return m.SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type=joined.protocol_type or PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=[
                m.SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=member_id, assignment=assignment_blob(places)
                )
                for member_id, places in assigned.items()
            ],
        )

    def _ask_patiently(self, request: m.Message, deadline: float | None) -> Any:
        """A request that the coordinator may hold back until all members have sent theirs."""
        patience_s = self.settings.rebalance_timeout_ms / 1000 + PATIENCE_S
        if deadline is not None:
            patience_s = min(patience_s, max(deadline - time.monotonic(), RETRY_PAUSE_S))
        return self._coordinators.ask(self.group_id, request, timeout_s=patience_s)

    def _interval_ms(self) -> int:
        return self.settings.heartbeat_interval_ms

    def _begin_anew(self, code: ErrorCode) -> None:
        super()._begin_anew(code)
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def _beat(self) -> None:
        if self.rejoins:
            return  # JoinGroup is the next sign of life
        request = m.HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._instance_id,
        )
        self._coordinators.check(self.group_id, self._coordinators.ask(self.group_id, request).error_code)


def assignment_blob(places: Sequence[Place]) -> bytes:
    """A member's partitions as the leader sends them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    return encode_assignment(
        m.ConsumerProtocolAssignment(
            assigned_partitions=[
                m.ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ]
        ),
        ASSIGNMENT_VERSION,
    )
