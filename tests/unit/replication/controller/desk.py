"""An active controller on a tree in memory, whose requests to brokers are kept instead of sent."""

from __future__ import annotations

import asyncio

from protocol import messages as m
from replication.controller.cluster_state import ControllerState, Replica, TopicPartition
from replication.controller.ledger import Ledger
from replication.controller.office import Office, OfficeSettings
from replication.controller.reign import Reign
from replication.metadata import controller_payloads, paths, payloads
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.store import ensure_path
from runtime.entropy import SeededRandom

LISTENER = "PLAINTEXT"
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
TOPIC_ID = b"T" * 16


class Outbox:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.requests = []
        self.dropped: list[int] = []

    def send(self, requests) -> None:
        self.requests += requests

    def drop(self, broker_id: int) -> None:
        self.dropped.append(broker_id)


class Desk:
    """The controller is broker 1, in epoch 1 unless told otherwise."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.store = MemoryStore(self.tree)
        self.outbox = Outbox()
        self.followed: list[str] = []
        self.paused = 0

    @classmethod
    async def with_topics(cls, topics=None, *, brokers=(1, 2, 3), begin=True, **settings) -> Desk:
        """`topics` maps a name to the replicas of its partitions; the first one leads, all are in sync."""
        desk = cls()
        await desk.store.open()
        for root in paths.ROOTS:
            await ensure_path(desk.store, root)
        await desk.store.create(paths.CONTROLLER, controller_payloads.encode_controller(1, 0))
        await desk.store.create(paths.CONTROLLER_EPOCH, b"1")
        for broker in brokers:
            await desk.register(broker)
        for name, replicas in (topics or {}).items():
            await desk.add_topic(name, replicas)
            for index in range(len(replicas)):
                await desk.add_state(name, index, replicas[index])
        desk.reign = await desk.new_reign(**settings)
        if begin:
            await desk.reign.begin()
            desk.outbox.requests.clear()
        return desk

    async def new_reign(self, **settings) -> Reign:
        epoch = await self.store.get(paths.CONTROLLER_EPOCH)
        self.ledger = Ledger(self.store, int(epoch.value), epoch.version, self.pause)
        self.state = ControllerState(1, int(epoch.value))
        office = Office(
            self.state,
            self.ledger,
            OfficeSettings(1, LISTENER, **settings),
            self.outbox,
            self.followed.append,
        )
        return Reign(office, SeededRandom(b"desk"))

    async def next_epoch(self, **settings) -> None:
        """Another controller is elected; the one at this desk is it."""
        epoch = await self.store.get(paths.CONTROLLER_EPOCH)
        await self.store.put(paths.CONTROLLER_EPOCH, str(int(epoch.value) + 1).encode())
        self.reign = await self.new_reign(**settings)
        await self.reign.begin()

    async def pause(self) -> None:
        self.paused += 1
        await asyncio.sleep(0)

    # What others write

    async def register(self, broker: int, rack: str | None = None, port: int = 9092) -> int:
        registration = payloads.BrokerPayload(
            {LISTENER: (f"host{broker}", port)}, {LISTENER: LISTENER}, rack, 0
        )
        return await self.store.create(paths.broker(broker), payloads.encode_broker(registration))

    async def add_topic(self, name: str, replicas, *, topic_id: bytes | None = TOPIC_ID) -> None:
        known = topic_id and bytes([*name.encode()[:1]]) * 16
        await self.store.create(
            paths.topic(name),
            payloads.encode_topic(payloads.TopicPayload(known, dict(enumerate(replicas)), {}, {})),
        )

    async def add_state(self, name: str, index: int, isr, *, leader=None, epoch=0, recovering=False) -> None:
        await ensure_path(self.store, paths.partition(name, index))
        leader = isr[0] if leader is None else leader
        state = payloads.StatePayload(leader, epoch, 1, tuple(isr), recovering)
        await self.store.create(paths.partition_state(name, index), payloads.encode_state(state))

    async def goes(self, *brokers: int) -> None:
        """Brokers lose their registration, and the controller hears of it."""
        for broker in brokers:
            await self.store.delete(paths.broker(broker))
        await self.reign.on_registrations()

    async def comes(self, *brokers: int) -> None:
        for broker in brokers:
            await self.register(broker)
        await self.reign.on_registrations()

    async def in_sync(self, *isr: int, partition: TopicPartition = T0) -> None:
        """The leader has had its set in sync changed."""
        from dataclasses import replace

        known = self.state.leaderships[partition]
        written = await self.ledger.put_leaderships({partition: replace(known, isr=isr)})
        self.state.leaderships.update(written.done)
        await self.reign.reassignments.complete_if_caught_up(partition)

    # What there is

    def stored(self, name: str = "t", index: int = 0) -> payloads.StatePayload:
        path = paths.partition_state(name, index)
        return payloads.decode_state(path, self.tree.nodes[path].value)

    def leads(self, name: str = "t", index: int = 0) -> tuple[int, int, tuple[int, ...]]:
        """(leader, leader epoch, in sync) as stored."""
        state = self.stored(name, index)
        return state.leader, state.leader_epoch, state.isr

    def topic(self, name: str = "t") -> payloads.TopicPayload:
        return payloads.decode_topic(paths.topic(name), self.tree.nodes[paths.topic(name)].value)

    def exists(self, path: str) -> bool:
        return path in self.tree.nodes

    def replica(self, broker: int, partition: TopicPartition = T0) -> Replica:
        return Replica(partition, broker)

    def take(self) -> list:
        """All requests since the last call."""
        taken, self.outbox.requests = self.outbox.requests, []
        return taken

    def told(self) -> list[str]:
        """The requests since the last call in short: `LISR 1 t-0 leader 1/0 isr 1,2 new`, one for each
        partition of each request, in order.
        """
        return [line for request in self.take() for line in short(request)]


def short(request) -> list[str]:
    kind, to = request.request, request.broker_id
    if isinstance(kind, m.LeaderAndIsrRequest):
        return [
            f"LISR {to} {topic.topic_name}-{p.partition_index} leader {p.leader}/{p.leader_epoch} "
            f"isr {','.join(map(str, p.isr))}{' new' if p.is_new else ''}"
            for topic in kind.topic_states
            for p in topic.partition_states
        ]
    if isinstance(kind, m.StopReplicaRequest):
        return [
            f"SR {to} {topic.topic_name}-{p.partition_index} {p.leader_epoch}"
            f"{' delete' if p.delete_partition else ''}"
            for topic in kind.topic_states
            for p in topic.partition_states
        ]
    states = [
        f"{topic.topic_name}-{p.partition_index} leader {p.leader}/{p.leader_epoch}"
        for topic in kind.topic_states
        for p in topic.partition_states
    ]
    return [f"UMR {to} {', '.join(states)}".rstrip()]


def story(test):
    """A test that is a coroutine."""

    def run():
        asyncio.run(test())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run
