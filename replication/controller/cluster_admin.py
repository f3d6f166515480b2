"""What the controller of a cluster is asked for: the door for the handlers of a broker.

The operations that a node alone has, too, have the same names and arguments as there, so that the handlers
are the same. Where this broker is not the controller each one says so (41), except changes of configurations,
which any broker makes. Operations that change what clients see return when this broker's own metadata shows
it, or with 7 when the client's time is over first; what was begun goes on then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller import (
    alter_partition,
    config_changes,
    config_requests,
    producer_id_blocks,
    reassignment_requests,
    topic_requests,
)
from replication.controller.assignment import Assignment
from replication.controller.cluster_controller import ClusterController
from replication.controller.cluster_state import TopicPartition
from replication.controller.events import NotController
from replication.controller.feature_changes import FeatureUpdate, plan_features
from replication.controller.image_waits import ImageWaits, leads
from replication.controller.leader_requests import ElectionOutcome, ElectionType
from replication.controller.outcomes import (
    ConfigOutcome,
    ControllerSettings,
    DeletionOutcome,
    MorePartitions,
    NewTopic,
    PartitionsOutcome,
    Refused,
    TopicOutcome,
    TopicToDelete,
)
from replication.controller.reign import Reign
from replication.metadata import paths
from replication.metadata.configs import ConfigChange, ConfigResource, ConfigRules
from replication.metadata.features import read_features
from replication.metadata.image import ClusterImage, ImageHolder
from runtime.entropy import Random

T = TypeVar("T")

_NOT_CONTROLLER = ErrorCode.NOT_CONTROLLER
_TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


class ClusterAdmin:
    """See the module."""

    def __init__(
        self,
        controller: ClusterController,
        holder: ImageHolder,
        settings: ControllerSettings,
        rules: ConfigRules,
        random: Random,
    ) -> None:
        self._controller = controller
        self._holder = holder
        self._settings = settings
        self._rules = rules
        self._random = random
        self._waits = ImageWaits(holder)

    @property
    def settings(self) -> ControllerSettings:
        return self._settings

    async def create_topics(
        self, topics: Sequence[NewTopic], *, timeout_ms: int, validate_only: bool = False
    ) -> list[TopicOutcome]:
        """Create topics. One outcome per distinct name."""

        async def create(reign: Reign) -> list[TopicOutcome]:
            return await topic_requests.create_topics(
                reign, topics, self._settings, self._rules, self._random, validate_only=validate_only
            )

        outcomes = await self._ask("CreateTopics", create)
        if outcomes is None:
            names = dict.fromkeys(topic.name for topic in topics)
            return [TopicOutcome(name, _NOT_CONTROLLER, _NOT_CONTROLLER.message) for name in names]
        created = [outcome for outcome in outcomes if outcome.error is ErrorCode.NONE]
        if validate_only or await self._waits.until(
            lambda image: all(leads(image, o.name, o.num_partitions, o.topic_id) for o in created),
            timeout_ms,
        ):
            return outcomes
        return [
            TopicOutcome(o.name, _TIMED_OUT, _TIMED_OUT.message)
            if o in created and not leads(self._holder.current, o.name, o.num_partitions, o.topic_id)
            else o
            for o in outcomes
        ]

    async def delete_topics(
        self, topics: Sequence[TopicToDelete], *, timeout_ms: int
    ) -> list[DeletionOutcome]:
        """Delete topics. One outcome per distinct topic."""
        outcomes = await self._ask("DeleteTopics", lambda reign: topic_requests.delete_topics(reign, topics))
        if outcomes is None:
            keys = dict.fromkeys((topic.name, topic.topic_id) for topic in topics)
            return [DeletionOutcome(*key, _NOT_CONTROLLER, _NOT_CONTROLLER.message) for key in keys]
        deleted = [outcome for outcome in outcomes if outcome.error is ErrorCode.NONE]
        if not await self._waits.until(lambda image: not any(_has(image, o) for o in deleted), timeout_ms):
            for outcome in deleted:
                if _has(self._holder.current, outcome):
                    outcome.error, outcome.message = _TIMED_OUT, _TIMED_OUT.message
        return outcomes

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, timeout_ms: int, validate_only: bool = False
    ) -> list[PartitionsOutcome]:
        """Add partitions to topics. One outcome per distinct name."""
        outcomes = await self._ask(
            "CreatePartitions",
            lambda reign: topic_requests.create_partitions(reign, topics, validate_only=validate_only),
        )
        counts = {topic.name: topic.count for topic in topics}
        if outcomes is None:
            return [PartitionsOutcome(name, _NOT_CONTROLLER, _NOT_CONTROLLER.message) for name in counts]
        grown = [outcome for outcome in outcomes if outcome.error is ErrorCode.NONE]
        if not validate_only and not await self._waits.until(
            lambda image: all(leads(image, o.name, counts[o.name]) for o in grown), timeout_ms
        ):
            for outcome in grown:
                if not leads(self._holder.current, outcome.name, counts[outcome.name]):
                    outcome.error, outcome.message = _TIMED_OUT, _TIMED_OUT.message
        return outcomes

    async def replace_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
        *,
        validate_only: bool = False,
    ) -> list[ConfigOutcome]:
        """AlterConfigs: replace all overrides of each resource. One outcome per distinct resource."""
        return await self._change_configs(
            [resource for resource, _ in resources],
            lambda image: config_changes.plan_replacement(image, resources, self._rules),
            validate_only,
        )

    async def alter_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
        *,
        validate_only: bool = False,
    ) -> list[ConfigOutcome]:
        """IncrementalAlterConfigs. One outcome per distinct resource."""
        return await self._change_configs(
            [resource for resource, _ in resources],
            lambda image: config_changes.plan_increments(image, resources, self._rules),
            validate_only,
        )

    async def update_features(
        self, updates: Iterable[FeatureUpdate], *, validate_only: bool = False
    ) -> tuple[ErrorCode, str | None]:
        """UpdateFeatures: finalize all levels, or none and say why."""

        async def update(reign: Reign) -> tuple[ErrorCode, str | None]:
            ledger = reign.office.ledger
            features = read_features(paths.FEATURES, await ledger.get(paths.FEATURES))
            try:
                known = {broker_id: each.features for broker_id, each in reign.state.brokers.items()}
                operations = plan_features(features, updates, reign.state.controller_id, known)
            except Refused as refused:
                return refused.error, refused.message
            if operations and not validate_only:
                await ledger.write(operations)
            return ErrorCode.NONE, None

        outcome = await self._ask("UpdateFeatures", update)
        return (_NOT_CONTROLLER, _NOT_CONTROLLER.message) if outcome is None else outcome

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> tuple[ErrorCode, int, int]:
        """AllocateProducerIds: (error, first id, how many)."""
        block = await self._ask(
            "AllocateProducerIds",
            lambda reign: producer_id_blocks.allocate(reign, broker_id, broker_epoch),
        )
        return (_NOT_CONTROLLER, 0, 0) if block is None else block

    async def alter_partition(
        self, request: m.AlterPartitionRequest, version: int
    ) -> m.AlterPartitionResponse:
        """AlterPartition, answered before reassignments that it completes go on."""

        async def alter(reign: Reign) -> m.AlterPartitionResponse:
            return await alter_partition.alter(reign, request, version)

        response = await self._ask("AlterPartition", alter)
        if response is None:
            return m.AlterPartitionResponse(error_code=_NOT_CONTROLLER)
        self._controller.tell(
            "reassignments", lambda reign: alter_partition.complete(reign, request, version)
        )
        return response

    async def controlled_shutdown(
        self, broker_id: int, broker_epoch: int
    ) -> tuple[ErrorCode, list[TopicPartition]]:
        """ControlledShutdown: (error, the partitions that the broker still leads)."""
        answer = await self._ask(
            "ControlledShutdown", lambda reign: reign.shutdowns.shut_down(broker_id, broker_epoch)
        )
        return (_NOT_CONTROLLER, []) if answer is None else answer

    async def alter_reassignments(
        self,
        wanted: Mapping[TopicPartition, tuple[int, ...] | None],
        *,
        allow_factor_change: bool = True,
    ) -> dict[TopicPartition, reassignment_requests.Outcome] | None:
        """AlterPartitionReassignments: an outcome per partition; None target cancels. None: not the
        controller.
        """
        return await self._ask(
            "AlterPartitionReassignments",
            lambda reign: reassignment_requests.alter(reign, wanted, allow_factor_change=allow_factor_change),
        )

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, Assignment] | None:
        """ListPartitionReassignments, of these partitions or of all. None: not the controller."""

        async def look(reign: Reign) -> dict[TopicPartition, Assignment]:
            return reassignment_requests.under_way(reign.state, partitions)

        return await self._ask("ListPartitionReassignments", look)

    async def elect_leaders(
        self, partitions: Sequence[TopicPartition] | None, kind: ElectionType, *, timeout_ms: int
    ) -> dict[TopicPartition, ElectionOutcome] | None:
        """ElectLeaders, for these partitions or for all that need it. None: not the controller."""

        async def elect(
            reign: Reign,
        ) -> tuple[dict[TopicPartition, ElectionOutcome], dict[TopicPartition, int]]:
            asked = list(reign.state.all_partitions()) if partitions is None else partitions
            outcomes = await reign.leaders.elect(asked, kind)
            elected = [p for p, (error, _) in outcomes.items() if error is ErrorCode.NONE]
            return outcomes, {p: reign.state.leaderships[p].leader for p in elected}

        answer = await self._ask("ElectLeaders", elect)
        if answer is None:
            return None
        outcomes, leaders = answer
        if partitions is None:
            unneeded = ErrorCode.ELECTION_NOT_NEEDED
            outcomes = {p: outcome for p, outcome in outcomes.items() if outcome[0] is not unneeded}
        if not await self._waits.until(
            lambda image: all(_leader(image, p) == leader for p, leader in leaders.items()), timeout_ms
        ):
            for partition, leader in leaders.items():
                if _leader(self._holder.current, partition) != leader:
                    outcomes[partition] = _TIMED_OUT, _TIMED_OUT.message
        return outcomes

    async def _ask(self, name: str, step: Callable[[Reign], Awaitable[T]]) -> T | None:
        """What the active controller makes of it, or None where there is none here."""
        try:
            return await self._controller.ask(name, step)
        except NotController:
            return None

    async def _change_configs(
        self, resources: Sequence[ConfigResource], plan: config_requests.Planner, validate_only: bool
    ) -> list[ConfigOutcome]:
        return await config_requests.change_configs(
            self._controller.store, self._holder.current, resources, plan, validate_only=validate_only
        )


def _has(image: ClusterImage, deleted: DeletionOutcome) -> bool:
    return deleted.topic_id in image.topics_by_id


def _leader(image: ClusterImage, partition: TopicPartition) -> int | None:
    found = image.partition(*partition)
    return None if found is None else found.leader
