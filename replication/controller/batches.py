"""The requests to brokers that one change of state causes, collected and then sent in Kafka's order.

For each broker there is at most one request of each kind, and they leave as LeaderAndIsr, UpdateMetadata,
StopReplica. Within a batch `isNew` and `deletePartition` stick once they are set. A batch is made for one
change and used once, so nothing of one change can get into the requests of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from protocol import messages as m
from protocol.uuids import ZERO_UUID
from replication.controller.cluster_state import ControllerState, Leadership, TopicPartition
from replication.controller.slices import slices
from replication.metadata.image import BrokerImage

LEADER_DURING_DELETE: Final = -2
"""The leader that UpdateMetadata names for a topic that is deleted: brokers forget it."""

LEADER_AND_ISR_VERSION: Final = 7
UPDATE_METADATA_VERSION: Final = 8
STOP_REPLICA_VERSION: Final = 4
"""What Kafka 3.9 sends to brokers of inter.broker.protocol.version 3.9; these are never negotiated."""

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

_LeaderAndIsrState = m.LeaderAndIsrRequest.LeaderAndIsrPartitionState
_StopState = m.StopReplicaRequest.StopReplicaPartitionState
_MetadataState = m.UpdateMetadataRequest.UpdateMetadataPartitionState


@dataclass(slots=True, frozen=True)
class ControlRequest:
    """One request to one broker. `deletions` are the partitions that a StopReplica has deleted."""

    broker_id: int
    broker_epoch: int
    request: Any
    version: int
    deletions: tuple[TopicPartition, ...] = ()


class RequestBatch:
    """Collects for one change. Leaders and metadata are told as they are when the requests are made."""

    def __init__(self, state: ControllerState, listener: str) -> None:
        """`listener` is the one through which brokers reach each other."""
        self._state = state
        self._listener = listener
        self._leaders: dict[int, dict[TopicPartition, bool]] = {}
        self._stops: dict[int, dict[TopicPartition, _StopState]] = {}
        self._told: dict[int, None] = {}
        self._all_told = False
        self._metadata: dict[TopicPartition, None] = {}

    def leader_and_isr(self, brokers: Iterable[int], partition: TopicPartition, *, is_new: bool) -> None:
        """Tell `brokers` of the partition's leadership, and all brokers by UpdateMetadata."""
        for broker in brokers:
            collected = self._leaders.setdefault(broker, {})
            collected[partition] = is_new or collected.get(partition, False)
        self._metadata[partition] = None
        self._all_told = True

    def stop_replica(self, broker: int, partition: TopicPartition, *, delete: bool) -> None:
        collected = self._stops.setdefault(broker, {})
        before = collected.get(partition)
        collected[partition] = _StopState(
            partition_index=partition.partition,
            leader_epoch=self._state.leader_epoch_to_stop(partition),
            delete_partition=delete or (before is not None and before.delete_partition),
        )

    def update_metadata(self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()) -> None:
        """Tell `brokers` who is alive, and with all that is told in this batch of these partitions. One that
        has no leadership yet is left out.
        """
        self._told.update(dict.fromkeys(brokers))
        self._metadata.update(dict.fromkeys(partitions))

    async def requests(self) -> list[ControlRequest]:
        """All of it, in the order of sending; brokers that are gone get nothing."""
        brokers = self._state.brokers
        made = [await self._leader_and_isr_to(brokers[b]) for b in sorted(self._leaders) if b in brokers]
        told = [broker for broker in sorted(brokers) if self._all_told or broker in self._told]
        if told:
            topics = await self._metadata_topics()
            live = [_live_broker(brokers[broker]) for broker in sorted(brokers)]
            made += [self._update_metadata_to(brokers[broker], topics, live) for broker in told]
        return made + [self._stop_replica_to(brokers[b]) for b in sorted(self._stops) if b in brokers]

    async def _leader_and_isr_to(self, broker: BrokerImage) -> ControlRequest:
        topics: dict[str, list[_LeaderAndIsrState]] = {}
        leaders: dict[int, None] = {}
        async for part in slices(self._leaders[broker.broker_id].items()):
            for partition, is_new in part:
                told = self._leader_and_isr_state(partition, is_new)
                topics.setdefault(partition.topic, []).append(told)
                leaders[told.leader] = None
        request = m.LeaderAndIsrRequest(
            controller_id=self._state.controller_id,
            controller_epoch=self._state.epoch,
            broker_epoch=broker.epoch,
            topic_states=[
                m.LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic, topic_id=self._topic_id(topic), partition_states=told
                )
                for topic, told in topics.items()
            ],
            live_leaders=self._live_leaders(leaders),
        )
        return ControlRequest(broker.broker_id, broker.epoch, request, LEADER_AND_ISR_VERSION)

    def _leader_and_isr_state(self, partition: TopicPartition, is_new: bool) -> _LeaderAndIsrState:
        known, assignment = self._state.leaderships[partition], self._state.assignment(partition)
        return _LeaderAndIsrState(
            partition_index=partition.partition,
            controller_epoch=known.controller_epoch,
            leader=known.leader,
            leader_epoch=known.leader_epoch,
            isr=list(known.isr),
            partition_epoch=known.partition_epoch,
            replicas=list(assignment.replicas),
            adding_replicas=list(assignment.adding),
            removing_replicas=list(assignment.removing),
            is_new=is_new,
            leader_recovery_state=int(known.recovering),
        )

    def _live_leaders(self, leaders: Iterable[int]) -> list[m.LeaderAndIsrRequest.LeaderAndIsrLiveLeader]:
        found: list[m.LeaderAndIsrRequest.LeaderAndIsrLiveLeader] = []
        for leader in leaders:
            broker = self._state.brokers.get(leader)
            endpoint = None if broker is None else broker.endpoints.get(self._listener)
            if endpoint is not None:
                found.append(
                    m.LeaderAndIsrRequest.LeaderAndIsrLiveLeader(
                        broker_id=leader, host_name=endpoint.host, port=endpoint.port
                    )
                )
        return found

    async def _metadata_topics(self) -> list[m.UpdateMetadataRequest.UpdateMetadataTopicState]:
        topics: dict[str, list[_MetadataState]] = {}
        async for part in slices(self._metadata):
            for partition in part:
                known = self._state.leaderships.get(partition)
                if known is not None:
                    topics.setdefault(partition.topic, []).append(self._metadata_state(partition, known))
        return [
            m.UpdateMetadataRequest.UpdateMetadataTopicState(
                topic_name=topic, topic_id=self._topic_id(topic), partition_states=told
            )
            for topic, told in topics.items()
        ]

    def _metadata_state(self, partition: TopicPartition, known: Leadership) -> _MetadataState:
        replicas, goes = self._state.assignment(partition).replicas, self._state.is_going(partition.topic)
        return _MetadataState(
            partition_index=partition.partition,
            controller_epoch=known.controller_epoch,
            leader=LEADER_DURING_DELETE if goes else known.leader,
            leader_epoch=0 if goes else known.leader_epoch,
            isr=list(known.isr),
            zk_version=0 if goes else known.partition_epoch,
            replicas=list(replicas),
            offline_replicas=[b for b in replicas if not self._state.is_online(b, partition)],
        )

    def _update_metadata_to(
        self,
        broker: BrokerImage,
        topics: Sequence[m.UpdateMetadataRequest.UpdateMetadataTopicState],
        live: Sequence[m.UpdateMetadataRequest.UpdateMetadataBroker],
    ) -> ControlRequest:
        request = m.UpdateMetadataRequest(
            controller_id=self._state.controller_id,
            controller_epoch=self._state.epoch,
            broker_epoch=broker.epoch,
            topic_states=list(topics),
            live_brokers=list(live),
        )
        return ControlRequest(broker.broker_id, broker.epoch, request, UPDATE_METADATA_VERSION)

    def _stop_replica_to(self, broker: BrokerImage) -> ControlRequest:
        collected = self._stops[broker.broker_id]
        topics: dict[str, list[_StopState]] = {}
        for partition, told in collected.items():
            topics.setdefault(partition.topic, []).append(told)
        request = m.StopReplicaRequest(
            controller_id=self._state.controller_id,
            controller_epoch=self._state.epoch,
            broker_epoch=broker.epoch,
            topic_states=[
                m.StopReplicaRequest.StopReplicaTopicState(topic_name=topic, partition_states=told)
                for topic, told in topics.items()
            ],
        )
        deletions = tuple(partition for partition, told in collected.items() if told.delete_partition)
        return ControlRequest(broker.broker_id, broker.epoch, request, STOP_REPLICA_VERSION, deletions)

    def _topic_id(self, topic: str) -> bytes:
        return self._state.topic_ids.get(topic, ZERO_UUID)


def _live_broker(broker: BrokerImage) -> m.UpdateMetadataRequest.UpdateMetadataBroker:
    return m.UpdateMetadataRequest.UpdateMetadataBroker(
        id=broker.broker_id,
        endpoints=[
            m.UpdateMetadataRequest.UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=name,
                security_protocol=SECURITY_PROTOCOLS[endpoint.security_protocol],
            )
            for name, endpoint in broker.endpoints.items()
        ],
        rack=broker.rack,
    )
