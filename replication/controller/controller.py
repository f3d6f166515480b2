"""The controller: the one place that changes cluster metadata.

Every operation runs alone, in the order of the calls: decide on the current image (pure functions of this
package), persist through the MetadataStore in one transaction, publish the new image, answer. The publication
applies the image synchronously (ImageHolder), so that the answer leaves when the new leaders already serve.

This node is its only broker and its only controller: `start` registers it, completes and raises leader
epochs, and adopts what lies on disk. Elections and the reaction to other brokers come with the cluster and
use the same queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from protocol.errors import ErrorCode
from replication.controller import adoption, config_changes, epochs, topic_creation, topic_deletion
from replication.controller.feature_changes import FeatureUpdate, plan_features
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
from replication.metadata import paths, payloads
from replication.metadata.configs import ConfigChange, ConfigResource, ConfigRules
from replication.metadata.features import read_features
from replication.metadata.image import ClusterImage, EndpointImage, ImageHolder, TopicImage
from replication.metadata.load import load_image
from replication.metadata.store import BadVersion, Create, MetadataStore, Node, Operation, Put
from runtime.clock import Clock
from runtime.entropy import Random

T = TypeVar("T")

_log = logging.getLogger(__name__)


class RunBlocking(Protocol):
    """runtime's way to run a function on a thread."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


_TIMED_OUT = "The request timed out."

_Outcome = TypeVar("_Outcome", DeletionOutcome, PartitionsOutcome)


def _timed_out(outcomes: list[_Outcome]) -> list[_Outcome]:
    """Who gives the controller no time at all gets nothing done, as in Kafka since KRaft."""
    for outcome in outcomes:
        outcome.error, outcome.message = ErrorCode.REQUEST_TIMED_OUT, _TIMED_OUT
    return outcomes


_NAMES_TOLD = 10
_TOLD_AT_ONCE = 50
_PLANNED_AT_ONCE = 200  # partitions, of 15 us each


class Controller:
    """Operations on topics, configurations and producer ids. All of them wait for their turn, persist,
    publish.
    """

    def __init__(
        self,
        store: MetadataStore,
        holder: ImageHolder,
        settings: ControllerSettings,
        rules: ConfigRules,
        clock: Clock,
        random: Random,
        prepare: Callable[[ClusterImage], Awaitable[None]] | None = None,
        settle: Callable[[], Awaitable[None]] | None = None,
        run_blocking: RunBlocking | None = None,
    ) -> None:
        """`prepare(image)` runs between the write to the store and the publication, `settle()` after it
        (see ReplicaManager). Plans that take long are made by `run_blocking`, where it is given.
        """
        self._prepare, self._settle, self._run_blocking = prepare, settle, run_blocking
        self._store = store
        self._holder = holder
        self._settings = settings
        self._rules = rules
        self._clock = clock
        self._random = random
        self._turn = asyncio.Lock()

    @property
    def settings(self) -> ControllerSettings:
        return self._settings

    async def start(
        self,
        *,
        rack: str | None,
        endpoints: dict[str, EndpointImage],
        unclean: bool,
        lost: Callable[[str, int], bool] = lambda topic, index: False,
        on_disk: Iterable[adoption.LogOnDisk] = (),
        shared: bool = False,
    ) -> ClusterImage:
        """Take over: make the roots of the tree, register this broker, load, repair, publish the first image.

        `unclean` says that the last stop of this node was not clean, `lost(topic, index)` that a partition
        has no log any more. `on_disk` are the logs that the log manager found; it is consumed, and they are
        adopted, only when the store is new (a store without topics may be one whose topics were deleted), or
        when the directories are `shared` with Apache Kafka, which may have made topics and partitions since.
        Raises StoreError and BadPayload: a node that cannot read its metadata must not start.
        """

        async def take_over() -> ClusterImage:
            nodes = await self._store.subtree("/")
            me, epoch = self._settings.node_id, next_controller_epoch(nodes)
            found: list[adoption.LogOnDisk] = []
            writes = missing_roots(nodes)
            writes.append(Create(paths.broker(me), self._registration(rack, endpoints), ephemeral=True))
            writes.append(write_of_controller_epoch(nodes, epoch))
            if shared or paths.CONTROLLER_EPOCH not in nodes:
                found = list(on_disk)
                writes += self._adopt((log for log in found if paths.topic(log.topic) not in nodes), epoch)
            await self._store.multi(writes)
            image = load_image(await self._store.subtree("/"), me, epoch)
            if found and (more := adoption.grown(image.topics, found, me)):
                names = [topic.name for topic, _ in more[:_NAMES_TOLD]]
                _log.info("Adopting new partitions of %d topic(s): %s", len(more), ", ".join(names))
                await self._store.multi(adoption.growth(more, epoch))
                image = image.with_topics(topic for topic, _ in more)
            changed, operations = epochs.complete_and_raise(
                image, me, lambda topic, index: unclean or lost(topic, index)
            )
            if operations:
                await self._store.multi(operations)
                image = image.with_topics(changed)
                _tell_lost(changed, lost)
            self._holder.publish(image)
            return image

        return await self._alone(take_over)

    async def create_topics(
        self, topics: Sequence[NewTopic], *, timeout_ms: int, validate_only: bool = False
    ) -> list[TopicOutcome]:
        """Create all topics that pass, in one transaction. One outcome per distinct name."""

        async def create() -> list[TopicOutcome]:
            image = self._holder.current
            outcomes, changes = await self._planned(
                partial(topic_creation.plan_topics, image, topics, self._settings, self._rules, self._random),
                sum(max(topic.num_partitions, 1) for topic in topics),
            )
            if timeout_ms <= 0:
                return [TopicOutcome(o.name, ErrorCode.REQUEST_TIMED_OUT, _TIMED_OUT) for o in outcomes]
            if not validate_only and changes.operations:
                await self._store.multi(changes.operations)
                await self._publish(changes.image_after(image))
                await self._tell(
                    f"Created topic {topic.name} with {len(topic.partitions)} partition(s)"
                    for topic in changes.topics.values()
                )
            return outcomes

        return await self._alone(create)

    async def delete_topics(
        self, topics: Sequence[TopicToDelete], *, timeout_ms: int
    ) -> list[DeletionOutcome]:
        """Delete all topics that exist, in one transaction. One outcome per distinct topic."""

        async def delete() -> list[DeletionOutcome]:
            image = self._holder.current
            found = [
                image.topics_by_id.get(topic.topic_id) if topic.name is None else image.topics.get(topic.name)
                for topic in topics
            ]
            outcomes, deletions = await self._planned(
                partial(topic_deletion.plan_deletions, image, topics),
                sum(len(topic.partitions) for topic in found if topic is not None),
            )
            if timeout_ms <= 0:
                return _timed_out(outcomes)
            if deletions.operations:
                await self._store.multi(deletions.operations)
                await self._publish(deletions.image_after(image))
                await self._tell(f"Deleted topic {name}" for name in deletions.removed)
            return outcomes

        return await self._alone(delete)

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, timeout_ms: int, validate_only: bool = False
    ) -> list[PartitionsOutcome]:
        """Add partitions to topics, in one transaction. One outcome per distinct name."""

        async def grow() -> list[PartitionsOutcome]:
            image = self._holder.current
            outcomes, changes = await self._planned(
                partial(topic_creation.plan_partitions, image, topics, self._settings),
                sum(max(topic.count, 1) for topic in topics),
            )
            if timeout_ms <= 0:
                return _timed_out(outcomes)
            if not validate_only and changes.operations:
                await self._store.multi(changes.operations)
                await self._publish(changes.image_after(image))
            return outcomes

        return await self._alone(grow)

    async def replace_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
        *,
        validate_only: bool = False,
    ) -> list[ConfigOutcome]:
        """AlterConfigs: replace all overrides of each resource. One outcome per distinct resource."""

        async def change() -> list[ConfigOutcome]:
            plan = partial(config_changes.plan_replacement, self._holder.current, resources, self._rules)
            planned = await self._planned(plan, sum(1 + len(entries) for _, entries in resources))
            return await self._write_configs(*planned, validate_only)

        return await self._alone(change)

    async def alter_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
        *,
        validate_only: bool = False,
    ) -> list[ConfigOutcome]:
        """IncrementalAlterConfigs. One outcome per distinct resource."""

        async def change() -> list[ConfigOutcome]:
            plan = partial(config_changes.plan_increments, self._holder.current, resources, self._rules)
            planned = await self._planned(plan, sum(1 + len(changes) for _, changes in resources))
            return await self._write_configs(*planned, validate_only)

        return await self._alone(change)

    async def update_features(
        self, updates: Iterable[FeatureUpdate], *, validate_only: bool = False
    ) -> tuple[ErrorCode, str | None]:
        """UpdateFeatures: finalize all levels, or none and say why."""

        async def update() -> tuple[ErrorCode, str | None]:
            image = self._holder.current
            try:
                operations = plan_features(image.features, updates, self._settings.node_id)
            except Refused as refused:
                return refused.error, refused.message
            if operations and not validate_only:
                await self._store.multi(operations)
                features = read_features(paths.FEATURES, await self._store.get(paths.FEATURES))
                self._holder.publish(replace(image, features=features))
                _log.info("Finalized features are now %s", features.levels())
            return ErrorCode.NONE, None

        return await self._alone(update)

    async def allocate_producer_ids(self) -> tuple[int, int]:
        """The next block of producer ids for this broker: (first, how many). Persisted before it is given
        out, so no id is ever used twice; ids of a block that was not used up are lost.
        """

        async def allocate() -> tuple[int, int]:
            size = self._settings.producer_id_block_size
            while True:
                node = await self._store.get(paths.PRODUCER_ID_BLOCK)
                assert node is not None, "made at the start"
                first = 0
                if node.value:
                    first = payloads.decode_producer_id_block(paths.PRODUCER_ID_BLOCK, node.value)[2] + 1
                block = payloads.encode_producer_id_block(self._settings.node_id, first, first + size - 1)
                try:
                    await self._store.put(paths.PRODUCER_ID_BLOCK, block, node.version)
                except BadVersion:
                    continue  # another broker took that block
                return first, size

        return await self._alone(allocate)

    async def _alone(self, step: Callable[[], Awaitable[T]]) -> T:
        """Run one operation when those before it have finished. asyncio.Lock wakes in the order of
        waiting.
        """
        async with self._turn:
            return await step()

    async def _publish(self, image: ClusterImage) -> None:
        if self._prepare is not None:
            await self._prepare(image)
        self._holder.publish(image)
        if self._settle is not None:
            await self._settle()

    async def _planned(self, plan: Callable[[], T], size: int) -> T:
        """What `plan` gives. It reads an image, which nobody changes, so any thread may make it."""
        if self._run_blocking is None or size <= _PLANNED_AT_ONCE:
            return plan()
        return await self._run_blocking(plan)

    async def _tell(self, lines: Iterable[str]) -> None:
        for number, line in enumerate(lines, 1):
            _log.info("%s", line)
            if number % _TOLD_AT_ONCE == 0:
                await asyncio.sleep(0)

    def _registration(self, rack: str | None, endpoints: dict[str, EndpointImage]) -> bytes:
        return payloads.encode_broker(
            payloads.BrokerPayload(
                {name: (endpoint.host, endpoint.port) for name, endpoint in endpoints.items()},
                {name: endpoint.security_protocol for name, endpoint in endpoints.items()},
                rack,
                self._clock.now_ms(),
            )
        )

    def _adopt(self, on_disk: Iterable[adoption.LogOnDisk], controller_epoch: int) -> list[Operation]:
        topics, left = adoption.adopt(on_disk, self._settings.node_id)
        if left:
            _log.warning(
                "Log directories of %d topic(s) are left alone because they do not tell a whole topic: %s",
                len(left),
                ", ".join(left[:_NAMES_TOLD]),
            )
        if topics:
            _log.info("Adopting %d topic(s) found in the log directories", len(topics))
        return adoption.registration(topics, controller_epoch)

    async def _write_configs(
        self, outcomes: list[ConfigOutcome], plan: config_changes.ConfigPlan, validate_only: bool
    ) -> list[ConfigOutcome]:
        if plan.operations and not validate_only:
            await self._store.multi(plan.operations)
            self._holder.publish(self._holder.current.with_configs(plan.configs))
        return outcomes


def _tell_lost(raised: Sequence[TopicImage], lost: Callable[[str, int], bool]) -> None:
    names = [
        f"{topic.name}-{partition.index}"
        for topic in raised
        for partition in topic.partitions
        if partition.leader_epoch > 0 and lost(topic.name, partition.index)
    ]
    if names:
        _log.warning(
            "%d partition(s) have no log and begin empty under a higher leader epoch: %s%s",
            len(names),
            ", ".join(names[:_NAMES_TOLD]),
            " ..." if len(names) > _NAMES_TOLD else "",
        )


def missing_roots(nodes: Mapping[str, Node]) -> list[Operation]:
    """The creations of the folders that Kafka makes at each start and that are not there, parents first."""
    wanted: dict[str, None] = {}
    for root in paths.ROOTS:
        parts = root.split("/")
        for depth in range(2, len(parts) + 1):
            wanted["/".join(parts[:depth])] = None
    return [Create(path, b"") for path in wanted if path not in nodes]


def next_controller_epoch(nodes: Mapping[str, Node]) -> int:
    """One more than the stored one; the first controller has epoch 1."""
    node = nodes.get(paths.CONTROLLER_EPOCH)
    return 1 if node is None else int(node.value) + 1


def write_of_controller_epoch(nodes: Mapping[str, Node], epoch: int) -> Operation:
    """Bare decimal text, changed only if nobody else was elected meanwhile."""
    node = nodes.get(paths.CONTROLLER_EPOCH)
    value = str(epoch).encode()
    if node is None:
        return Create(paths.CONTROLLER_EPOCH, value)
    return Put(paths.CONTROLLER_EPOCH, value, node.version)
