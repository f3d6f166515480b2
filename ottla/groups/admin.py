"""What an administrator does to groups: list, delete, read and change their offsets.

OffsetFetch goes out in version 9 at most: later ones name topics by id, which a tool would have to look up.
OffsetCommit likewise (version 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.client import ClientError, KafkaClient
from ottla.groups.coordinators import WAITS, Coordinators
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

LAST_WITH_NAMES = 9
FIRST_WITH_GROUPS = 8
FIRST_WITH_ALL_TOPICS = 2
FIRST_WITH_STATES, FIRST_WITH_TYPES = 4, 5
NO_OFFSET = -1
NO_EPOCH = -1
NO_GENERATION = -1

Place = tuple[str, int]  # topic, partition


class Listing(NamedTuple):
    """A group in a list; `state` and `type` (Classic, Consumer ...) are "" where the broker is too old."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class Committed(NamedTuple):
    """A committed offset; leader_epoch is -1 where none was committed with it."""

    offset: int
    leader_epoch: int = NO_EPOCH


class GroupAdmin:
    """Operations on groups, each sent to the coordinator and repeated while that moves or loads."""

    def __init__(self, client: KafkaClient, timeout_s: float) -> None:
        self.client = client
        self.coordinators = Coordinators(client, timeout_s)

    def list_groups(
        self, protocol_types: Sequence[str] | None, states: Sequence[str] = (), types: Sequence[str] = ()
    ) -> list[Listing]:
        """The groups of all brokers, in the order of their ids; empty filters, and None for protocol types,
        let everything pass.
        """
        self.client.metadata([])
        found: dict[str, Listing] = {}
        for node in list(self.client.nodes):
            for each in self.coordinators.patiently(lambda node=node: self._listed(node, states, types)):  # type: ignore[misc]
                if protocol_types is None or each.protocol_type in protocol_types:
                    found[each.group_id] = each
        return [found[group_id] for group_id in sorted(found)]

    def delete_groups(self, group_ids: Sequence[str]) -> dict[str, ErrorCode]:
        """Deletes groups; the outcome of each."""
        outcome: dict[str, ErrorCode] = {}

        def step() -> None:
            left = [group_id for group_id in group_ids if group_id not in outcome]
            for node, ids in self.coordinators.by_node(left).items():
                response = self.client.call(m.DeleteGroupsRequest(groups_names=ids), node)
                for result in response.results:
                    if result.error_code in WAITS:
                        self.coordinators.check(result.group_id, result.error_code)
                    outcome[result.group_id] = ErrorCode(result.error_code)

        self.coordinators.patiently(step)
        return {group_id: outcome[group_id] for group_id in group_ids if group_id in outcome}

    def committed(self, group_id: str) -> dict[Place, Committed]:
        """All offsets that a group has committed, by topic and partition; none for a group that is not."""
        return self.coordinators.patiently(lambda: self._committed(group_id))

    def commit(self, group_id: str, offsets: Mapping[Place, int]) -> dict[Place, ErrorCode]:
        """Writes offsets for a group without members; the outcome for each partition."""
        topics: dict[str, list[m.OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                m.OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=NO_EPOCH,
                    committed_metadata="",
                )
            )
        request = m.OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=NO_GENERATION,
            topics=[
                m.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )

        def step() -> dict[Place, ErrorCode]:
            version = min(self.coordinators.version_for(group_id, ApiKey.OFFSET_COMMIT), LAST_WITH_NAMES)
            response: m.OffsetCommitResponse = self.coordinators.ask(group_id, request, version)
            outcome = {}
            for topic in response.topics:
                for each in topic.partitions:
                    if each.error_code in WAITS:
                        self.coordinators.check(group_id, each.error_code)
                    outcome[topic.name, each.partition_index] = ErrorCode(each.error_code)
            return outcome

        return self.coordinators.patiently(step)

    def delete_offsets(self, group_id: str, places: Iterable[Place]) -> dict[Place, ErrorCode]:
        """Deletes offsets of a group; the outcome for each partition, ClientError for the whole group's."""
        topics: dict[str, list[m.OffsetDeleteRequest.OffsetDeleteRequestPartition]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(
                m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=partition)
            )
        request = m.OffsetDeleteRequest(
            group_id=group_id,
            topics=[
                m.OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )

        def step() -> dict[Place, ErrorCode]:
            response: m.OffsetDeleteResponse = self.coordinators.ask(group_id, request)
            self.coordinators.check(group_id, response.error_code)
            return {
                (topic.name, each.partition_index): ErrorCode(each.error_code)
                for topic in response.topics
                for each in topic.partitions
            }

        return self.coordinators.patiently(step)

    def _listed(self, node: int, states: Sequence[str], types: Sequence[str]) -> list[Listing]:
        version = self.client.connection(node).version_for(ApiKey.LIST_GROUPS)
        if states and version < FIRST_WITH_STATES:
            raise ClientError(
                "The broker only supports ListGroups v" + str(version) + ", but we need v4 or newer to "
                "request groups by states.",
                ErrorCode.UNSUPPORTED_VERSION,
            )
        request = m.ListGroupsRequest(
            states_filter=list(states), types_filter=list(types) if version >= FIRST_WITH_TYPES else []
        )
        response: m.ListGroupsResponse = self.client.call(request, node)
        if response.error_code in WAITS:
            raise ClientError(ErrorCode(response.error_code).message, ErrorCode(response.error_code))
        self.coordinators.check("", response.error_code)
        return [
            Listing(each.group_id, each.protocol_type, each.group_state, each.group_type.capitalize())
            for each in response.groups
        ]

    def _committed(self, group_id: str) -> dict[Place, Committed]:
        version = min(self.coordinators.version_for(group_id, ApiKey.OFFSET_FETCH), LAST_WITH_NAMES)
        if version < FIRST_WITH_ALL_TOPICS:
            raise ClientError("the broker can't tell all offsets of a group", ErrorCode.UNSUPPORTED_VERSION)
        if version < FIRST_WITH_GROUPS:
            old: m.OffsetFetchResponse = self.coordinators.ask(
                group_id, m.OffsetFetchRequest(group_id=group_id, topics=None), version
            )
            self.coordinators.check(group_id, old.error_code)
            return dict(self._readable(group_id, old.topics))
        group = m.OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=group_id, member_id=None, member_epoch=NO_EPOCH, topics=None
        )
        response: m.OffsetFetchResponse = self.coordinators.ask(
            group_id, m.OffsetFetchRequest(groups=[group]), version
        )
        (answered,) = response.groups
        self.coordinators.check(group_id, answered.error_code)
        return dict(self._readable(group_id, answered.topics))

    def _readable(
        self,
        group_id: str,
        topics: Iterable[
            m.OffsetFetchResponse.OffsetFetchResponseTopic | m.OffsetFetchResponse.OffsetFetchResponseTopics
        ],
    ) -> Iterable[tuple[Place, Committed]]:
        """Partitions with an offset; a partition the caller may not see is left out, as Kafka's does."""
        for topic in topics:
            for each in topic.partitions:
                if each.error_code == ErrorCode.NONE and each.committed_offset != NO_OFFSET:
                    yield (
                        (topic.name, each.partition_index),
                        Committed(each.committed_offset, each.committed_leader_epoch),
                    )
                elif each.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                    self.coordinators.check(group_id, each.error_code)
