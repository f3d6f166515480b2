"""One member of a classic group: joins, syncs, beats, commits, leaves.

It gives up all partitions before it joins anew (the eager protocol), as Java's consumer does with its
default assignors. The life of a membership:

    join() -> assignment;  beats in a thread of its own;  `rejoins` turns true when the group rebalances or
    does not know the member any more; the owner commits (unless `lost`), then calls join() again;  leave().

The coordinator has a connection of its own, so that a fetch that waits does not hold up a heartbeat; owner
and thread take turns on it under a lock. A refusal that repeats until it is understood by a person
(authorization, a fenced instance id, no common assignor) is a ClientError from join() or commit().
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client import ClientError, KafkaClient
from ottla.groups.admin import LAST_WITH_NAMES, Place
from ottla.groups.assignors import ASSIGNORS, Assignment, subscriber, subscription_blob
from ottla.groups.coordinators import RETRY_PAUSE_S, WAITS, Coordinators
from ottla.groups.descriptions import assigned_places
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.consumer_blobs import encode_assignment
from protocol.errors import ErrorCode

PROTOCOL_TYPE = "consumer"
ASSIGNMENT_VERSION = 3
NO_GENERATION = -1
FIRST_LEAVE_OF_SEVERAL = 3
CONNECTIONS_TRIED = 3
PATIENCE_S = 5.0  # beyond what a join may take

UNKNOWN = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
AGAIN = (*WAITS, ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED, *UNKNOWN)


@dataclass(slots=True)
class MemberSettings:
    """What a consumer's properties say of its membership; times in ms."""

    group_id: str
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    instance_id: str | None = None
    assignors: tuple[str, ...] = tuple(ASSIGNORS)


class Member:
    """A membership. `client` is this member's alone."""

    def __init__(self, client: KafkaClient, settings: MemberSettings) -> None:
        self.settings = settings
        self.member_id = ""
        self.generation = NO_GENERATION
        self.rejoins = True
        self.lost = False  # the group goes on without us: there is nothing to commit
        self._client = client
        self._coordinators = Coordinators(client, client.timeout_s)
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._heart: threading.Thread | None = None
        self._failure: ClientError | None = None

    @property
    def _group(self) -> str:
        return self.settings.group_id

    def join(
        self,
        topics: Sequence[str],
        partition_counts: Callable[[Sequence[str]], Mapping[str, int]],
        timeout_s: float | None = None,
    ) -> list[Place]:
        """Takes part in a rebalance; the partitions that are ours after it.

        partition_counts is asked where we are the leader. Waits for the other members, timeout_s at most
        (None: as long as they may take); then TimeoutError.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        broken = 0
        with self._lock:
            while True:
                try:
                    return self._join_once(topics, partition_counts, deadline)
                except ClientError as error:
                    if deadline is not None and time.monotonic() >= deadline:
                        raise TimeoutError("the group did not settle in time") from error
                    broken = broken + 1 if error.error is None else 0
                    if broken > CONNECTIONS_TRIED:
                        raise
                    self._judge(error)
                time.sleep(RETRY_PAUSE_S)

    def commit(self, offsets: Mapping[Place, tuple[int, int]]) -> bool:
        """Commits offsets (each with the leader's epoch or -1) as this member; False where a rebalance
        or a moving coordinator forbids it now. Other refusals are ClientErrors."""
        if not offsets:
            return True
        topics: dict[str, list[m.OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for (topic, partition), (offset, epoch) in offsets.items():
            topics.setdefault(topic, []).append(
                m.OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    committed_metadata="",
                )
            )
        request = m.OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            topics=[
                m.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        with self._lock:
            try:
                version = self._coordinators.version_for(self._group, ApiKey.OFFSET_COMMIT)
                response: m.OffsetCommitResponse = self._coordinators.ask(
                    self._group, request, min(version, LAST_WITH_NAMES)
                )
                for committed in response.topics:
                    for each in committed.partitions:
                        self._coordinators.check(self._group, each.error_code)
            except ClientError as error:
                self._judge(error)
                return False
        return True

    def check(self) -> None:
        """Raises what ended the membership for good, if something did."""
        if self._failure is not None:
            raise self._failure

    def leave(self) -> None:
        """Leaves the group, as far as the coordinator can be told; a static member stays in it."""
        self._ends.set()
        if self._heart is not None:
            self._heart.join()
        if not self.member_id or self.settings.instance_id is not None:
            return
        with self._lock:
            try:
                version = self._coordinators.version_for(self._group, ApiKey.LEAVE_GROUP)
                self._coordinators.ask(self._group, self._farewell(version), version)
            except ClientError:
                return  # the session times out instead

    def _farewell(self, version: int) -> m.LeaveGroupRequest:
        if version < FIRST_LEAVE_OF_SEVERAL:
            return m.LeaveGroupRequest(group_id=self._group, member_id=self.member_id)
        identity = m.LeaveGroupRequest.MemberIdentity(
            member_id=self.member_id, reason="the consumer is being closed"
        )
        return m.LeaveGroupRequest(group_id=self._group, members=[identity])

    def _join_once(
        self,
        topics: Sequence[str],
        partition_counts: Callable[[Sequence[str]], Mapping[str, int]],
        deadline: float | None,
    ) -> list[Place]:
        request = m.JoinGroupRequest(
            group_id=self._group,
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
        self._coordinators.check(self._group, joined.error_code)
        self.generation = joined.generation_id
        assigned: Assignment = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            subscribers = [
                subscriber(each.member_id, each.group_instance_id, each.metadata) for each in joined.members
            ]
            wanted = sorted({topic for each in subscribers for topic in each.topics})
            assigned = ASSIGNORS[joined.protocol_name or ""](subscribers, partition_counts(wanted))
        synced: m.SyncGroupResponse = self._ask_patiently(self._sync_request(joined, assigned), deadline)
        self._coordinators.check(self._group, synced.error_code)
        self.rejoins = self.lost = False
        self._beat_from_now()
        return assigned_places(synced.assignment)

    def _sync_request(self, joined: m.JoinGroupResponse, assigned: Assignment) -> m.SyncGroupRequest:
        return m.SyncGroupRequest(
            group_id=self._group,
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
        return self._coordinators.ask(self._group, request, timeout_s=patience_s)

    def _judge(self, error: ClientError) -> None:
        """Learns from a refusal; raises it where trying again does not help."""
        code = error.error
        if code is None:
            self._coordinators.forget(self._group)  # the connection failed: ask where to go
            return
        if code not in AGAIN:
            if not code.retriable:
                raise error
            return
        if code in UNKNOWN:
            self.lost = True
            self.generation = NO_GENERATION
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        if code not in WAITS:
            self.rejoins = True

    def _beat_from_now(self) -> None:
        if self._heart is None:
            self._heart = threading.Thread(target=self._beats, name="heartbeat", daemon=True)
            self._heart.start()

    def _beats(self) -> None:
        while not self._ends.wait(self.settings.heartbeat_interval_ms / 1000):
            with self._lock:
                if not self.rejoins and not self._ends.is_set():
                    self._beat()

    def _beat(self) -> None:
        request = m.HeartbeatRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
        )
        try:
            self._coordinators.check(self._group, self._coordinators.ask(self._group, request).error_code)
        except ClientError as error:
            try:
                self._judge(error)
            except ClientError as final:
                self._failure = final
                self._ends.set()


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
