"""One controller epoch from its beginning: what is taken over, in which order, and the parts that go on.

The order matters (Kafka's failover): notes of brokers are dropped and everything is read; all brokers get
UpdateMetadata, without which they do not know the brokers that the first LeaderAndIsr names; replicas, then
partitions find their states, which completes creations that were cut short; then what was under way goes on:
reassignments, deletions, elections that tools asked for.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.batches import ControlRequest
from replication.controller.broker_changes import BrokerChanges
from replication.controller.cluster_state import Replica, TopicPartition
from replication.controller.deletions import Deletions
from replication.controller.leader_requests import LeaderRequests
from replication.controller.ledger import leadership_in
from replication.controller.legacy_reassignment import LegacyReassignment
from replication.controller.notifications import Notifications
from replication.controller.office import Office
from replication.controller.partition_states import PartitionMachine
from replication.controller.reassignments import Reassignments
from replication.controller.replica_states import ReplicaMachine
from replication.controller.shutdowns import Shutdowns
from replication.controller.slices import slices
from replication.controller.topic_changes import TopicChanges, read_topic
from replication.metadata import controller_payloads, paths
from replication.metadata.image import BrokerImage
from replication.metadata.load import read_brokers
from replication.metadata.payloads import BadPayload
from replication.metadata.store import Create, Node, NodeExists, Put
from runtime.entropy import Random

LOADED_AT_ONCE: Final = 200

_log = logging.getLogger(__name__)


class Reign:
    """An active controller. Its parts are called one at a time."""

    def __init__(self, office: Office, random: Random) -> None:
        self.office = office
        self.state = office.state
        self._random = random
        self.partitions = PartitionMachine(office)
        self.replicas = ReplicaMachine(office)
        self.deletions = Deletions(office, self.partitions, self.replicas)
        self.legacy = LegacyReassignment(office.ledger)
        self.reassignments = Reassignments(
            office, self.partitions, self.replicas, self.deletions, self.legacy
        )
        self.brokers = BrokerChanges(
            office, self.partitions, self.replicas, self.deletions, self.reassignments
        )
        self.topics = TopicChanges(office, self.partitions, self.replicas, random)
        self.shutdowns = Shutdowns(office, self.partitions, self.replicas)
        self.leaders = LeaderRequests(office, self.partitions)
        self.notifications = Notifications(office, self.brokers, self.reassignments)

    async def begin(self) -> None:
        """Take over. Raises ControllerMoved when another broker has meanwhile."""
        await self._enable_kafka_features()
        await self.notifications.clear()
        await self._load()
        await self.deletions.start(await self.office.ledger.children(paths.DELETE_TOPICS))
        await self.office.update_metadata(self.state.reachable)
        await self.replicas.start()
        self.partitions.start()
        await self.partitions.bring_online()
        _log.info("Controller epoch %d begins: %d topics", self.state.epoch, len(self.state.assignments))
        legacy = await self.reassignments.resume_legacy()
        await self.reassignments.resume(lambda partition, _: partition not in legacy)
        await self.deletions.go_on()
        await self.leaders.on_legacy_node()

    async def registered_brokers(self) -> dict[int, BrokerImage]:
        """Who is registered now; a registration that cannot be read counts as none."""
        for broker in await self.office.ledger.children(paths.BROKER_IDS):
            self.office.follow(f"{paths.BROKER_IDS}/{broker}")
        nodes = await self.office.ledger.subtree(paths.BROKER_IDS)
        brokers: dict[int, BrokerImage] = {}
        for path, node in nodes.items():
            try:
                brokers |= read_brokers({path: node})
            except BadPayload as damaged:
                _log.error("A broker is passed over: %s", damaged)
        return brokers

    async def on_registrations(self) -> None:
        """The registrations of brokers have changed."""
        await self.brokers.on_registrations(await self.registered_brokers())

    async def on_answer(self, request: ControlRequest, response: Any) -> None:
        """A broker has answered a control request."""
        error = ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            _log.error("Broker %d answers %s: %s", request.broker_id, type(response).__name__, error.name)
        if isinstance(response, m.LeaderAndIsrResponse):
            if error is ErrorCode.NONE:
                await self._on_leader_and_isr(request.broker_id, response)
        elif isinstance(response, m.StopReplicaResponse):
            await self._on_stop_replica(request, response, error)

    async def _on_leader_and_isr(self, broker: int, response: m.LeaderAndIsrResponse) -> None:
        """Replicas whose directory failed are offline from now on, those that are served are not."""
        lost: list[Replica] = []
        kept: list[Replica] = []
        for topic in response.topics:
            name = self.state.topic_names.get(topic.topic_id)
            for answer in topic.partition_errors if name is not None else ():
                replica = Replica(TopicPartition(name or "", answer.partition_index), broker)
                if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                    lost.append(replica)
                elif answer.error_code == ErrorCode.NONE:
                    kept.append(replica)
        if broker in self.state.brokers:
            await self.brokers.on_lost_directories(broker, lost, kept)

    async def _on_stop_replica(
        self, request: ControlRequest, response: m.StopReplicaResponse, error: ErrorCode
    ) -> None:
        """Replicas of topics that are deleted are gone, or could not be removed."""
        errors = {
            TopicPartition(answer.topic_name, answer.partition_index): answer.error_code
            for answer in response.partition_errors
        }
        failed: list[Replica] = []
        done: list[Replica] = []
        for partition in request.deletions:
            if partition.topic in self.state.deletion_started:
                well = error is ErrorCode.NONE and errors.get(partition, 0) == ErrorCode.NONE
                (done if well else failed).append(Replica(partition, request.broker_id))
        await self.deletions.failed(failed)
        if done:
            await self.deletions.succeeded(done)

    async def _load(self) -> None:
        self.state.brokers.update(await self.registered_brokers())
        await self._load_topics()
        states = {paths.partition_state(*each): each for each in self.state.all_partitions()}
        nodes = await self.office.ledger.get_many(list(states))
        async for part in slices(states.items(), LOADED_AT_ONCE):
            for path, partition in part:
                if self.state.assignment(partition).reassigning:
                    self.state.reassigning[partition] = None
                if path in nodes:
                    self._load_leadership(partition, path, nodes[path])

    async def _load_topics(self) -> None:
        topics = {paths.topic(name): name for name in await self.office.ledger.children(paths.TOPICS)}
        for path in topics:
            self.office.follow(path)
        nodes = await self.office.ledger.get_many(list(topics))
        async for part in slices(nodes.items(), LOADED_AT_ONCE):
            for path, node in part:
                stored = await read_topic(self.office.ledger, topics[path], self._random, node)
                if stored is not None:
                    self.state.add_topic(topics[path], *stored)

    def _load_leadership(self, partition: TopicPartition, path: str, node: Node) -> None:
        try:
            self.state.leaderships[partition] = leadership_in(path, node)
        except BadPayload as damaged:
            _log.error("A partition has no leader: %s", damaged)

    async def _enable_kafka_features(self) -> None:
        """Kafka's brokers wait for /feature; it stays empty, for in ZooKeeper mode they know no feature."""
        node = await self.office.ledger.get(paths.KAFKA_FEATURE)
        if node is None:
            try:
                await self.office.ledger.write(
                    [Create(paths.KAFKA_FEATURE, controller_payloads.encode_kafka_feature())]
                )
            except NodeExists:
                return
        elif not controller_payloads.is_kafka_feature_enabled(paths.KAFKA_FEATURE, node.value):
            await self.office.ledger.write(
                [Put(paths.KAFKA_FEATURE, controller_payloads.encode_kafka_feature(), node.version)]
            )
