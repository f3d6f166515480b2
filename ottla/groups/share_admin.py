"""What an administrator does to share groups: describe them, read, alter and delete their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.client import ClientError
from ottla.groups.admin import GroupAdmin, Place
from ottla.groups.coordinators import WAITS
from protocol import messages as m
from protocol.errors import ErrorCode

PROTOCOL_TYPES = ("share",)
TYPES = ("Share",)
LAG_NOT_KNOWN = -1


class ShareOffset(NamedTuple):
    """Where a group stands in a partition; what is not known is None."""

    start_offset: int
    leader_epoch: int
    lag: int | None


@dataclass(slots=True)
class ShareMember:
    """A member of a share group and what it reads."""

    member_id: str
    host: str
    client_id: str
    epoch: int
    assignment: list[Place]


@dataclass(slots=True)
class ShareGroup:
    """A share group and the broker that coordinates it."""

    group_id: str
    coordinator: tuple[int, str, int]  # node id, host, port
    state: str
    epoch: int
    assignment_epoch: int
    members: list[ShareMember] = field(default_factory=list)


class ShareGroupAdmin(GroupAdmin):
    """Operations on share groups, each sent to the coordinator and repeated while that moves or loads."""

    def describe(self, group_ids: Sequence[str]) -> dict[str, ShareGroup]:
        """The groups in the order of their ids. Raises ClientError for the first that cannot be described."""
        found: dict[str, ShareGroup] = {}

        def step() -> None:
            left = [each for each in group_ids if each not in found]
            for node, ids in self.coordinators.by_node(left).items():
                for group in self.client.call(m.ShareGroupDescribeRequest(group_ids=ids), node).groups:
                    self._check(group.group_id, group.error_code, group.error_message)
                    found[group.group_id] = self._group(group, node)

        self.coordinators.patiently(step)
        return {group_id: found[group_id] for group_id in sorted(found)}

    def offsets(self, group_id: str) -> dict[Place, ShareOffset | None]:
        """All partitions that the group has state for; None where it does not know yet where it begins."""
        request = m.DescribeShareGroupOffsetsRequest
        body = request(groups=[request.DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)])

        def step() -> dict[Place, ShareOffset | None]:
            [group] = self.coordinators.ask(group_id, body).groups
            self._check(group_id, group.error_code, group.error_message)
            rows = [(topic.topic_name, row) for topic in group.topics for row in topic.partitions]
            return {
                (topic, row.partition_index): _offset(row)
                for topic, row in sorted(rows, key=lambda each: (each[0], each[1].partition_index))
                if row.error_code == ErrorCode.NONE
            }

        return self.coordinators.patiently(step)

    def alter(self, group_id: str, offsets: Mapping[Place, int]) -> None:
        """Have a group without members begin elsewhere. Raises ClientError, also for a single partition."""
        request = m.AlterShareGroupOffsetsRequest
        topics: dict[str, list[m.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                request.AlterShareGroupOffsetsRequestPartition(partition_index=partition, start_offset=offset)
            )
        asked = [
            request.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]

        def step() -> None:
            response = self.coordinators.ask(group_id, request(group_id=group_id, topics=asked))
            self._check(group_id, response.error_code, response.error_message)
            for topic in response.responses:
                for row in topic.partitions:
                    self._check(group_id, row.error_code, row.error_message)

        self.coordinators.patiently(step)

    def delete_topics(self, group_id: str, topics: Iterable[str]) -> dict[str, tuple[ErrorCode, str]]:
        """Have a group forget topics; the outcome of each. Raises ClientError for the whole group's."""
        request = m.DeleteShareGroupOffsetsRequest
        asked = [request.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]

        def step() -> dict[str, tuple[ErrorCode, str]]:
            response = self.coordinators.ask(group_id, request(group_id=group_id, topics=asked))
            self._check(group_id, response.error_code, response.error_message)
            return {
                topic.topic_name: (ErrorCode(topic.error_code), topic.error_message or "")
                for topic in response.responses
            }

        return self.coordinators.patiently(step)

    def _check(self, group_id: str, code: int, message: str | None) -> None:
        if code in WAITS:
            self.coordinators.check(group_id, code, message)
        if code != ErrorCode.NONE:
            error = ErrorCode(code)
            raise ClientError(message or error.message, error)

    def _group(self, group: m.ShareGroupDescribeResponse.DescribedGroup, node: int) -> ShareGroup:
        members = [
            ShareMember(
                member.member_id,
                member.client_host,
                member.client_id,
                member.member_epoch,
                [
                    (topic.topic_name, index)
                    for topic in member.assignment.topic_partitions
                    for index in topic.partitions
                ],
            )
            for member in group.members
        ]
        return ShareGroup(
            group.group_id,
            (node, *self.client.nodes[node]),
            group.group_state,
            group.group_epoch,
            group.assignment_epoch,
            members,
        )


def _offset(
    row: m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition,
) -> ShareOffset | None:
    if row.start_offset < 0:
        return None
    return ShareOffset(row.start_offset, row.leader_epoch, None if row.lag == LAG_NOT_KNOWN else row.lag)
