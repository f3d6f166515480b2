"""A member of a classic group that speaks the protocol itself, one request a call, for conformance tests.

    with Member(servers, "g") as member:
        member.enter()             # JoinGroup until it is in a generation
        member.sync({member.id: b"its part"})

It remembers its id and generation from what it is answered, so a test can be precise about old ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

Protocols = Sequence[tuple[str, bytes]]
RANGE: Protocols = (("range", b"meta"),)
JOIN_VERSION = 9
PATIENT = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000}


def subscription(*topics: str) -> bytes:
    """The metadata of a consumer that subscribes to these topics."""
    return b"\x00\x00" + m.ConsumerProtocolSubscription(topics=list(topics)).encode(0)


def await_coordinator(wire: WireClient, group: str = "g") -> None:
    """Have the topic of groups made and its partitions loaded; Kafka takes a moment for both."""

    def is_there() -> bool:
        request = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        [found] = wire.send(request, 4).coordinators
        if found.error_code != ErrorCode.NONE:
            return False
        return not wire.send(m.DescribeGroupsRequest(groups=[group]), 5).groups[0].error_code

    wait_until(is_there, "a coordinator")


def create_for_groups(wire: WireClient, name: str, partitions: int = 1) -> bytes:
    """A topic that the coordinator of groups knows, too. Apache Kafka's hears of it later than its leaders.
    One change is carried out after the other there, so what is seen of the next one tells of the first.
    """
    topic_id = wire.create_topic(name, partitions)
    change = m.IncrementalAlterConfigsRequest
    entry = change.AlterableConfig(name="retention.ms", config_operation=0, value="604800000")  # the default
    altered = change.AlterConfigsResource(resource_type=2, resource_name=name, configs=[entry])
    [answer] = wire.send(change(resources=[altered]), 1).responses
    assert answer.error_code == ErrorCode.NONE, answer
    describe = m.DescribeConfigsRequest
    described = describe.DescribeConfigsResource(
        resource_type=2, resource_name=name, configuration_keys=["retention.ms"]
    )

    def is_its_own() -> bool:
        [told] = wire.send(describe(resources=[described]), 4).results
        return [each.config_source for each in told.configs] == [1]

    wait_until(is_its_own, f"the next change of {name}")
    return topic_id


class Member:
    """One member, with a connection of its own."""

    def __init__(
        self,
        servers: str,
        group: str,
        *,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        instance_id: str | None = None,
        session_timeout_ms: int = 30_000,
        rebalance_timeout_ms: int = 30_000,
        client_id: str = "wire",
    ) -> None:
        self.wire = WireClient(servers, client_id)
        self.group = group
        self.protocols = protocols
        self.protocol_type = protocol_type
        self.instance_id = instance_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.id = ""
        self.generation = -1
        self.leader = ""
        self.protocol: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    @property
    def leads(self) -> bool:
        return self.leader == self.id

    def join_request(self, **fields: Any) -> m.JoinGroupRequest:
        """A JoinGroup as this member is now."""
        protocols = [
            m.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in self.protocols
        ]
        known = {
            "group_id": self.group,
            "session_timeout_ms": self.session_timeout_ms,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "member_id": self.id,
            "group_instance_id": self.instance_id,
            "protocol_type": self.protocol_type,
            "protocols": protocols,
        }
        return m.JoinGroupRequest(**{**known, **fields})

    def post_join(self, version: int = JOIN_VERSION, **fields: Any) -> int:
        """Send a JoinGroup; `joined` waits for its answer."""
        return self.wire.post(self.join_request(**fields), version)

    def joined(self, posted: int) -> Any:
        """The answer to a JoinGroup; the member takes over what it says."""
        answer = self.wire.receive(posted)
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.id = answer.member_id
        if answer.error_code == ErrorCode.NONE:
            self.generation, self.leader = answer.generation_id, answer.leader
            self.protocol = answer.protocol_name
        return answer

    def join(self, version: int = JOIN_VERSION, **fields: Any) -> Any:
        """One JoinGroup and its answer."""
        return self.joined(self.post_join(version, **fields))

    def get_id(self, **fields: Any) -> str:
        """Ask for a member id, which is not in the group yet."""
        answer = self.join(**fields)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
        return self.id

    def post_enter(self, version: int = JOIN_VERSION, **fields: Any) -> int:
        """Get an id where one is needed, and send the JoinGroup that counts."""
        if not self.id and self.instance_id is None and version >= 4:
            self.get_id(**PATIENT)  # an id lasts as long as the session that is asked for
        return self.post_join(version, **fields)

    def enter(self, version: int = JOIN_VERSION, **fields: Any) -> Any:
        """Join, with an id if one is needed; the answer."""
        answer = self.joined(self.post_enter(version, **fields))
        assert answer.error_code == ErrorCode.NONE, answer
        return answer

    def post_sync(
        self, assignments: Mapping[str, bytes] | None = None, version: int = 5, **fields: Any
    ) -> int:
        """Send a SyncGroup; the answer is `wire.receive`d."""
        given = [
            m.SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in (assignments or {}).items()
        ]
        known: dict[str, Any] = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance_id if version >= 3 else None,
            "assignments": given,
        }
        if version >= 5:
            known |= {"protocol_type": self.protocol_type, "protocol_name": self.protocol}
        return self.wire.post(m.SyncGroupRequest(**{**known, **fields}), version)

    def sync(self, assignments: Mapping[str, bytes] | None = None, version: int = 5, **fields: Any) -> Any:
        """One SyncGroup and its answer."""
        return self.wire.receive(self.post_sync(assignments, version, **fields))

    def post_heartbeat(self, version: int = 4, **fields: Any) -> int:
        """Send a heartbeat; the answer is `wire.receive`d."""
        known = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance_id if version >= 3 else None,
        }
        return self.wire.post(m.HeartbeatRequest(**{**known, **fields}), version)

    def heartbeat(self, version: int = 4, **fields: Any) -> ErrorCode:
        """One heartbeat; what it says."""
        return ErrorCode(self.wire.receive(self.post_heartbeat(version, **fields)).error_code)

    def leave(self, version: int = 5) -> ErrorCode:
        """Leave the group; the member's own error."""
        request = m.LeaveGroupRequest
        if version < 3:
            answer = self.wire.send(request(group_id=self.group, member_id=self.id), version)
            return ErrorCode(answer.error_code)
        identity = request.MemberIdentity(member_id=self.id, group_instance_id=self.instance_id)
        answer = self.wire.send(request(group_id=self.group, members=[identity]), version)
        assert answer.error_code == ErrorCode.NONE
        [member] = answer.members
        return ErrorCode(member.error_code)

    def commit(
        self, topic: str, offset: int, metadata: str | None = "", version: int = 9, **fields: Any
    ) -> ErrorCode:
        """Commit an offset of partition 0 as this member; the partition's error."""
        request = m.OffsetCommitRequest
        partition = request.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        known = {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.id,
            "group_instance_id": self.instance_id if version >= 7 else None,
            "topics": [request.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        }
        answer = self.wire.send(request(**{**known, **fields}), version)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def describe(self, version: int = 5) -> Any:
        """The group as DescribeGroups shows it."""
        [found] = self.wire.send(m.DescribeGroupsRequest(groups=[self.group]), version).groups
        return found


def reach(member: Member, state: str) -> None:
    wait_until(lambda: member.describe().group_state == state, f"state {state}")


def form(*members: Member) -> Member:
    """Bring the members into one generation, not synced yet; the leader. Times of theirs, which may be short,
    begin to count with that generation.
    """
    first = members[0]
    first.enter(**PATIENT)
    posted = {}
    for number, member in enumerate(members[1:], 2):
        posted[member] = member.post_enter()
        await_members(first, number)
    posted[first] = first.post_join()
    for member, join in posted.items():
        assert member.joined(join).error_code == 0
    assert len({member.generation for member in members}) == 1
    [leader] = [member for member in members if member.leads]
    return leader


def settle(*members: Member) -> Member:
    """Bring the members into one Stable generation, each with its id as assignment; the leader.

    Each one's SyncGroup waits behind its JoinGroup at the broker, which answers one after the other: however
    slow this process is, no time of a member runs out before all are there.
    """
    first, *others = members
    first.enter(**(PATIENT if others else {}))
    generation = first.generation + bool(others)
    joining: dict[Member, int] = {}
    syncing: dict[Member, int] = {}
    for number, member in enumerate(others, 2):
        joining[member] = member.post_enter()
        if member.id:  # static members have none yet
            syncing[member] = member.post_sync(version=4, generation_id=generation)
        await_members(first, number)
    parts = {each.member_id: each.member_id.encode() for each in first.describe().members}
    if others:
        joining[first] = first.post_join()
    syncing[first] = first.post_sync(parts, version=4, generation_id=generation)
    for member in [*others, first]:
        if member in joining:
            assert member.joined(joining[member]).error_code == 0
        sync = syncing[member] if member in syncing else member.post_sync()
        answer = member.wire.receive(sync)
        assert (answer.error_code, answer.assignment) == (0, member.id.encode())
    assert first.leads
    assert {member.generation for member in members} == {generation}
    return first


def await_members(asking: Member, count: int) -> None:
    """Wait until the group has so many."""
    wait_until(lambda: len(asking.describe().members) == count, f"{count} members")
