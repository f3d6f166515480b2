"""A cluster as its controllers see it: brokers that keep the fences of control requests, one tree, no logs.

A broker has a session with the tree, a controller that stands for election, and what control requests have
told it. A leader asks for all live replicas to be in sync, and for dead ones not to
be, as soon as it knows. `History` watches every write to the tree and every control request.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.controller.cluster_admin import ClusterAdmin
from replication.controller.cluster_controller import ClusterController
from replication.controller.cluster_state import TopicPartition
from replication.controller.office import OfficeSettings
from replication.controller.outcomes import ControllerSettings
from replication.metadata import paths, payloads
from replication.metadata.features import supported_levels
from replication.metadata.image import BrokerImage, ImageHolder, PartitionImage, TopicImage
from replication.metadata.load import read_brokers
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.notify import events_of
from replication.metadata.store import ConnectionLost, ensure_path
from runtime.entropy import SeededRandom
from runtime.tasks import TaskScope
from tests.support.logs import FixedClock
from tests.unit.replication.cluster import Rules
from tests.unit.replication.controller.history import History

LISTENER = "PLAINTEXT"


@dataclass
class Hosted:
    """A replica as its broker knows it."""

    topic_id: bytes
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    recovering: bool = False


class SessionOfHost(MemoryStore):
    """A session that can die with its host in the middle of a write."""

    def __init__(self, tree: MemoryTree, history: History) -> None:
        super().__init__(tree)
        self.history = history
        self.writes_until_crash: int | None = None
        self.crash_applies = True
        self.crashed = asyncio.Event()
        self.answers_lost = 0
        self.lost_ones_apply = True
        self.unheard: list | None = None

    def hear(self, events) -> None:
        """Watches may be late while everything else works."""
        if self.unheard is None:
            super().hear(events)
        else:
            self.unheard += events

    def catch_up(self) -> None:
        unheard, self.unheard = self.unheard or [], None
        super().hear(unheard)

    async def multi(self, operations):
        if self.crashed.is_set():
            await asyncio.Event().wait()
        crashes = False
        if self.writes_until_crash is not None:
            self.writes_until_crash -= 1
            crashes = self.writes_until_crash < 0
        if crashes and not self.crash_applies:
            self.crashed.set()
            await asyncio.Event().wait()
        self._require_session(operations[0].path)
        if self.answers_lost:
            self.answers_lost -= 1
            if self.lost_ones_apply:
                self.tree.apply(operations, self.session_id)
                self.history.check(operations)
                self.tree.tell(events_of(operations))
            raise ConnectionLost(operations[0].path)
        results = self.tree.apply(operations, self.session_id)
        self.history.check(operations)
        if crashes:
            self.crashed.set()
        self.tree.tell(events_of(operations))
        if crashes:
            await asyncio.Event().wait()
        return results


@dataclass
class World:
    """The tree, the brokers by id, and chance."""

    seed: int
    brokers: int = 3
    tree: MemoryTree = field(default_factory=MemoryTree)
    settings: dict = field(default_factory=dict)
    lossy: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.history = History(self.tree)
        self.hosts: dict[int, Host] = {}
        self.requests: list[tuple[int, object]] = []

    async def start(self) -> None:
        setup = MemoryStore(self.tree)
        await setup.open()
        for root in paths.ROOTS:
            await ensure_path(setup, root)
        await setup.close()
        for broker in range(1, self.brokers + 1):
            self.hosts[broker] = Host(self, broker)
            await self.hosts[broker].start()

    async def stop(self) -> None:
        for host in self.hosts.values():
            await host.kill()

    def controller(self) -> Host | None:
        """The host whose controller is active and not fenced."""
        node = self.tree.nodes.get(paths.CONTROLLER)
        if node is None:
            return None
        active = [host for host in self.hosts.values() if host.alive and host.controller.is_active]
        return next((host for host in active if host.store.session_id == node.owner), None)

    async def active(self) -> Host:
        """The host of the active controller, as soon as there is one that has nothing left to do."""
        while True:
            host = self.controller()
            if host is not None and not host.controller._events:
                await host.controller.ask("settled", _nothing)
                return host
            await asyncio.sleep(0.05)

    def state_of(self, topic: str, index: int = 0) -> payloads.StatePayload:
        path = paths.partition_state(topic, index)
        return payloads.decode_state(path, self.tree.nodes[path].value)

    def topic_of(self, topic: str) -> payloads.TopicPayload:
        return payloads.decode_topic(paths.topic(topic), self.tree.nodes[paths.topic(topic)].value)


async def _nothing(reign) -> None:
    return None


class Host:
    """One broker; `kill` and `start` again make a new process of it, whose disk still has its replicas."""

    def __init__(self, world: World, broker_id: int) -> None:
        self.world = world
        self.id = broker_id
        self.alive = False
        self.starts = 0
        self.features = supported_levels()
        self.disk: dict[TopicPartition, bytes] = {}

    async def start(self) -> None:
        world = self.world
        self.alive = True
        self.starts += 1
        self.hosted: dict[TopicPartition, Hosted] = {}
        self.failed_dirs: dict[TopicPartition, None] = {}
        self.controller_epoch = 0
        self.holder = ImageHolder()
        self.store = SessionOfHost(world.tree, world.history)
        await self.store.open()
        loop = asyncio.get_running_loop()
        self.tasks = TaskScope(loop, f"broker {self.id}")
        self.controller = ClusterController(
            self.store,
            HostChannels(self),
            OfficeSettings(self.id, LISTENER, **world.settings),
            FixedClock(),
            SeededRandom(f"{world.seed} {self.id} {self.starts}".encode()),
            TaskScope(loop, f"controller {self.id}"),
        )
        self.admin = ClusterAdmin(
            self.controller,
            self.holder,
            ControllerSettings(self.id),
            Rules(),
            SeededRandom(f"admin {world.seed} {self.id} {self.starts}".encode()),
        )
        self.controller.start()
        await self.register()
        self.tasks.spawn("leader", self.lead())

    async def register(self) -> None:
        """Under the session of now; waits for an earlier registration of this id to go."""
        broker = payloads.BrokerPayload(
            {LISTENER: (f"host{self.id}", 9092)}, {LISTENER: LISTENER}, None, 0, self.features
        )
        if paths.broker(self.id) in self.world.tree.nodes:
            gone = asyncio.Event()
            cancel = self.store.watch(paths.broker(self.id), lambda *_: gone.set())
            await gone.wait()
            cancel()
        self.epoch = await self.store.create(
            paths.broker(self.id), payloads.encode_broker(broker), ephemeral=True
        )
        self.controller.stand()

    async def kill(self, *, session_ends: bool = True) -> None:
        """As kill -9: nothing of it runs any more. Its session may live on."""
        if not self.alive:
            return
        self.alive = False
        self.store.listeners = type(self.store.listeners)()
        await self.tasks.aclose()
        await self.controller.close()
        if session_ends:
            self.end_session()

    def end_session(self) -> None:
        self.store.end()

    async def expire(self) -> None:
        """The session ends while the broker lives; it registers anew."""
        self.store.expire()
        await self.store.open()
        await self.register()

    # Leading

    async def lead(self) -> None:
        """Have in sync whoever is alive, and nobody else."""
        while True:
            await asyncio.sleep(0.2)
            for partition, known in list(self.hosted.items()):
                if known.leader == self.id:
                    await self.alter(partition, known)

    async def alter(self, partition: TopicPartition, known: Hosted) -> None:
        live = self.holder.current.brokers
        members = [b for b in known.replicas if b == self.id or (b in live and self.follows(b, partition))]
        controller = self.world.controller()
        if (tuple(members) == known.isr and not known.recovering) or controller is None:
            return
        request = alter_request(self, partition, known, members)
        response = await controller.admin.alter_partition(request, 3)
        if response.error_code == 0:
            answer = response.topics[0].partitions[0]
            now = self.hosted.get(partition)
            if answer.error_code == 0 and now is not None and now.leader_epoch == answer.leader_epoch:
                now.isr, now.partition_epoch = tuple(answer.isr), answer.partition_epoch
                now.recovering = bool(answer.leader_recovery_state)

    def follows(self, broker: int, partition: TopicPartition) -> bool:
        other = self.world.hosts[broker]
        return other.alive and partition in other.hosted and other.hosted[partition].leader == self.id

    # Control requests

    def handle(self, request):
        """A control request with the fences of a broker."""
        self.world.requests.append((self.id, request))
        if request.broker_epoch not in (-1,) and request.broker_epoch < self.epoch:
            return self.refuse(request, ErrorCode.STALE_BROKER_EPOCH)
        if request.controller_epoch < self.controller_epoch:
            return self.refuse(request, ErrorCode.STALE_CONTROLLER_EPOCH)
        self.controller_epoch = request.controller_epoch
        if isinstance(request, m.LeaderAndIsrRequest):
            return self.leader_and_isr(request)
        if isinstance(request, m.StopReplicaRequest):
            return self.stop_replica(request)
        return self.update_metadata(request)

    def refuse(self, request, error: ErrorCode):
        if isinstance(request, m.LeaderAndIsrRequest):
            return m.LeaderAndIsrResponse(error_code=error)
        if isinstance(request, m.StopReplicaRequest):
            return m.StopReplicaResponse(error_code=error)
        return m.UpdateMetadataResponse(error_code=error)

    def leader_and_isr(self, request: m.LeaderAndIsrRequest) -> m.LeaderAndIsrResponse:
        topics = []
        for topic in request.topic_states:
            errors = []
            for told in topic.partition_states:
                partition = TopicPartition(topic.topic_name, told.partition_index)
                self.world.history.leader(
                    topic.topic_id, told.partition_index, told.leader_epoch, told.leader
                )
                error = self.take(partition, topic.topic_id, told)
                errors.append(
                    m.LeaderAndIsrResponse.LeaderAndIsrPartitionError(
                        partition_index=told.partition_index, error_code=error
                    )
                )
            topics.append(
                m.LeaderAndIsrResponse.LeaderAndIsrTopicError(
                    topic_id=topic.topic_id, partition_errors=errors
                )
            )
        return m.LeaderAndIsrResponse(topics=topics)

    def take(self, partition: TopicPartition, topic_id: bytes, told) -> ErrorCode:
        known = self.hosted.get(partition)
        if partition in self.failed_dirs:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if known is not None and known.topic_id != topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if known is not None and told.leader_epoch <= known.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if self.id not in told.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self.hosted[partition] = Hosted(
            topic_id,
            told.leader,
            told.leader_epoch,
            told.partition_epoch,
            tuple(told.isr),
            tuple(told.replicas),
            bool(told.leader_recovery_state),
        )
        self.disk[partition] = topic_id
        return ErrorCode.NONE

    def stop_replica(self, request: m.StopReplicaRequest) -> m.StopReplicaResponse:
        errors = []
        for topic in request.topic_states:
            for told in topic.partition_states:
                partition = TopicPartition(topic.topic_name, told.partition_index)
                known, error = self.hosted.get(partition), ErrorCode.NONE
                if partition in self.failed_dirs:
                    error = ErrorCode.KAFKA_STORAGE_ERROR
                elif known is not None and -1 < told.leader_epoch < known.leader_epoch:
                    error = ErrorCode.FENCED_LEADER_EPOCH
                else:
                    self.hosted.pop(partition, None)
                    if told.delete_partition:
                        self.disk.pop(partition, None)
                errors.append(
                    m.StopReplicaResponse.StopReplicaPartitionError(
                        topic_name=topic.topic_name,
                        partition_index=told.partition_index,
                        error_code=error,
                    )
                )
        return m.StopReplicaResponse(partition_errors=errors)

    def update_metadata(self, request: m.UpdateMetadataRequest) -> m.UpdateMetadataResponse:
        image = self.holder.current
        changed: dict[str, TopicImage] = {}
        removed: dict[str, None] = {}
        for topic in request.topic_states:
            name, before = topic.topic_name, image.topics.get(topic.topic_name)
            partitions = {p.index: p for p in before.partitions} if before is not None else {}
            if before is not None and before.topic_id != topic.topic_id:
                partitions = {}
            for told in topic.partition_states:
                self.world.history.leader(
                    topic.topic_id, told.partition_index, told.leader_epoch, told.leader
                )
                if told.leader == -2:
                    partitions.pop(told.partition_index, None)
                else:
                    partitions[told.partition_index] = PartitionImage(
                        told.partition_index,
                        told.leader,
                        told.leader_epoch,
                        told.zk_version,
                        tuple(told.isr),
                        tuple(told.replicas),
                    )
            if partitions:
                changed[name] = TopicImage(
                    name, topic.topic_id, tuple(v for _, v in sorted(partitions.items()))
                )
            elif before is not None:
                removed[name] = None
        brokers = {broker.id: BrokerImage(broker.id, 0, {}, broker.rack) for broker in request.live_brokers}
        self.holder.publish(image.with_topics(changed.values(), removed).with_brokers(brokers))
        return m.UpdateMetadataResponse()


def alter_request(host: Host, partition: TopicPartition, known: Hosted, members) -> m.AlterPartitionRequest:
    """What a leader asks for."""
    kind = m.AlterPartitionRequest
    return kind(
        broker_id=host.id,
        broker_epoch=host.epoch,
        topics=[
            kind.TopicData(
                topic_id=known.topic_id,
                partitions=[
                    kind.PartitionData(
                        partition_index=partition.partition,
                        leader_epoch=known.leader_epoch,
                        new_isr_with_epochs=[kind.BrokerState(broker_id=b) for b in members],
                        leader_recovery_state=0,
                        partition_epoch=known.partition_epoch,
                    )
                ],
            )
        ],
    )


class HostChannels:
    """Channels from one host to the others, with delays and losses by chance."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def to(self, broker_id: int, purpose: str) -> HostChannel:
        return HostChannel(self.host, broker_id)


class HostChannel:
    """See the module."""

    def __init__(self, host: Host, broker_id: int) -> None:
        self.host = host
        self.broker_id = broker_id

    async def ask(self, request, version=None):
        world = self.host.world
        await asyncio.sleep(world.random.random() * 0.01)
        other = world.hosts[self.broker_id]
        if not other.alive or world.random.random() < world.lossy:
            raise ChannelLost("the request is lost")
        response = other.handle(request)
        await asyncio.sleep(world.random.random() * 0.01)
        if world.random.random() < world.lossy:
            raise ChannelLost("the answer is lost")
        return response

    def abort(self) -> None:
        return

    async def close(self) -> None:
        return


def registered(world: World) -> dict[int, BrokerImage]:
    prefix = f"{paths.BROKER_IDS}/"
    return read_brokers({at: node for at, node in world.tree.nodes.items() if at.startswith(prefix)})
