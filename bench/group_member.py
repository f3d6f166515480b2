"""A member of a classic consumer group, without I/O: it takes answers and gives the next request.

    frame = member.join()                 send, and hand each answer to
    frame = member.answered(answer)       which gives the next frame, or None: the member is stable

The leader spreads the topic's partitions evenly. A member that is told of a rebalance joins again, so that a
group settles whatever the order in which its members come.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bench import wire
from protocol import messages as m
from protocol.errors import ErrorCode

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, COMMIT_VERSION = 7, 5, 4, 8
PROTOCOL_TYPE, PROTOCOL = "consumer", "range"
SESSION_TIMEOUT_MS = 60_000
REBALANCE_TIMEOUT_MS = 120_000
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,  # Kafka makes the partitions of a new topic one after the other
)


@dataclass(slots=True)
class Member:
    """One member of `group` that subscribes to `topic`."""

    group: str
    topic: str
    partitions: int
    member_id: str = ""
    generation: int = -1
    leads: bool = False
    assigned: list[int] = field(default_factory=list)
    syncing: bool = False
    all_members: list[str] = field(default_factory=list)

    def join(self) -> bytes:
        """JoinGroup: the first, or again."""
        subscription = m.ConsumerProtocolSubscription(topics=[self.topic]).encode(0)
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL, metadata=b"\0\0" + subscription)
        self.syncing = False
        return wire.framed(
            m.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                member_id=self.member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[protocol],
            ),
            JOIN_VERSION,
        )

    def answered(self, answer: bytes) -> bytes | None:
        """Take the answer to the last frame. Raises RefusedError."""
        return self._synced(answer) if self.syncing else self._joined(answer)

    def heartbeat(self) -> bytes:
        """Heartbeat in the member's generation."""
        request = m.HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        return wire.framed(request, HEARTBEAT_VERSION)

    def commit(self) -> bytes:
        """OffsetCommit for the member's first partition."""
        partition = m.OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=self.assigned[0], committed_offset=1, committed_metadata=""
        )
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name=self.topic, partitions=[partition])
        request = m.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[topic],
        )
        return wire.framed(request, COMMIT_VERSION)

    def leave(self) -> bytes:
        """LeaveGroup."""
        one = m.LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        return wire.framed(m.LeaveGroupRequest(group_id=self.group, members=[one]), 4)

    def _joined(self, answer: bytes) -> bytes:
        response = wire.answered(m.JoinGroupResponse, JOIN_VERSION, answer)
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return self.join()
        if response.error_code in NOT_YET:
            return self.join()
        _check(response.error_code, "JoinGroup")
        self.member_id, self.generation = response.member_id, response.generation_id
        self.leads = response.leader == response.member_id
        self.all_members = [each.member_id for each in response.members]
        return self._sync()

    def _sync(self) -> bytes:
        self.syncing = True
        count = len(self.all_members)
        assignments = [
            m.SyncGroupRequest.SyncGroupRequestAssignment(
                member_id=each, assignment=self._assignment(range(at, self.partitions, count))
            )
            for at, each in enumerate(self.all_members)
        ]
        return wire.framed(
            m.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=assignments,
            ),
            SYNC_VERSION,
        )

    def _assignment(self, partitions: range) -> bytes:
        own = m.ConsumerProtocolAssignment.TopicPartition(topic=self.topic, partitions=list(partitions))
        return b"\0\0" + m.ConsumerProtocolAssignment(assigned_partitions=[own]).encode(0)

    def _synced(self, answer: bytes) -> bytes | None:
        response = wire.answered(m.SyncGroupResponse, SYNC_VERSION, answer)
        if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return self.join()
        _check(response.error_code, "SyncGroup")
        assignment, _ = m.ConsumerProtocolAssignment.decode(0, response.assignment, 2)
        self.assigned = [p for topic in assignment.assigned_partitions for p in topic.partitions]
        return None


def check_heartbeat(answer: bytes) -> None:
    """Raises RefusedError for an answer that is not NONE."""
    _check(wire.answered(m.HeartbeatResponse, HEARTBEAT_VERSION, answer).error_code, "Heartbeat")


def check_commit(answer: bytes) -> None:
    """The same for a commit of one partition."""
    response = wire.answered(m.OffsetCommitResponse, COMMIT_VERSION, answer)
    _check(response.topics[0].partitions[0].error_code, "OffsetCommit")


def rebalancing(answer: bytes) -> bool:
    """Whether the answer to a heartbeat says that the member has to join again."""
    error = wire.answered(m.HeartbeatResponse, HEARTBEAT_VERSION, answer).error_code
    if error == ErrorCode.REBALANCE_IN_PROGRESS:
        return True
    _check(error, "Heartbeat")
    return False


def _check(error_code: int, what: str) -> None:
    if error_code:
        error = ErrorCode(error_code)
        raise wire.RefusedError(f"{what} answered {error.name}: {error.message}")
