"""A broker's metadata and replicas for tests: memory store, simulated files, its own controller."""

from __future__ import annotations

import asyncio

from protocol.errors import ErrorCode
from replication.controller.controller import Controller
from replication.controller.outcomes import ControllerSettings, NewTopic
from replication.fetch import Wanted
from replication.metadata.configs import ConfigRefused, ConfigResource, ConfigType
from replication.metadata.image import EndpointImage, ImageHolder
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.partition import Partition
from replication.replica_manager import ReplicaManager
from runtime.entropy import SeededRandom
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import FixedClock, batch, checked, open_manager

NODE = 1
ENDPOINTS = {"PLAINTEXT": EndpointImage("127.0.0.1", 9092)}


class Rules:
    """Keys that start with `good`, lists that end with `list`; the rest is refused."""

    def validate(self, resource, values):
        for key, value in values.items():
            if not key.startswith("good"):
                raise ConfigRefused(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
            if value == "bad":
                raise ConfigRefused(ErrorCode.INVALID_CONFIG, f"Invalid value bad for configuration {key}")

    def is_list(self, resource, key):
        return key.endswith("list")

    def inherited(self, resource, key):
        return "a,b" if key == "good.inherited.list" else None


class Broker:
    """One node with everything of this package wired as the broker does it. Use inside `asyncio.run`."""

    def __init__(self, files=None, tree=None, **settings):
        self.files = files or SimFileSystem()
        self.tree = tree or MemoryTree()
        self.clock = FixedClock()
        self.store = MemoryStore(self.tree)
        self.logs = open_manager(self.files, clock=self.clock)
        self.holder = ImageHolder()
        self.replicas = ReplicaManager(NODE, self.holder, self.logs, self.config_of)
        self.settings = ControllerSettings(NODE, **settings)
        self.controller = Controller(
            self.store,
            self.holder,
            self.settings,
            Rules(),
            self.clock,
            SeededRandom(b"controller"),
            self.replicas.prepare,
            self.replicas.settle,
        )

    @staticmethod
    def config_of(topic, overrides):
        return LogConfig(
            min_insync_replicas=int(overrides.get("good.min.isr", 1)),
            segment_bytes=int(overrides.get("good.segment.bytes", 1 << 30)),
            cleanup_policy=(overrides.get("good.cleanup.policy", "delete"),),
        )

    async def start(self, unclean=False, on_disk=(), rack=None, shared=False):
        await self.store.open()
        return await self.controller.start(
            rack=rack, endpoints=ENDPOINTS, unclean=unclean, on_disk=on_disk, shared=shared
        )

    async def create(self, name, partitions=1, **configs):
        given = tuple((key.replace("_", "."), str(value)) for key, value in configs.items())
        outcomes = await self.controller.create_topics(
            [NewTopic(name, partitions, 1, configs=given)], timeout_ms=1000
        )
        assert outcomes[0].error == ErrorCode.NONE, outcomes
        return outcomes[0]


def topic_resource(name):
    return ConfigResource(ConfigType.TOPIC, name)


def on_broker(story, **settings):
    """Run `story(broker)` on a started broker."""

    async def main():
        broker = Broker(**settings)
        await broker.start()
        await story(broker)

    asyncio.run(main())


def produce(partition: Partition, count: int = 1, acks: int = 1, size: int = 20, **fields) -> int:
    """Append one batch and write it; its base offset."""
    appended = partition.append(checked(batch(count, size=size, **fields)), acks, 0)
    partition.write_pending()
    return appended.base_offset


def wanted(topic: str, index: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **fields) -> Wanted:
    return Wanted(topic, bytes(16), index, offset, max_bytes, **fields)


class Parked:
    """A waiter that notes its calls."""

    def __init__(self, on_wake=None):
        self.woken = self.expired = 0
        self.on_wake = on_wake

    def wake(self):
        self.woken += 1
        if self.on_wake:
            self.on_wake()

    def expire(self):
        self.expired += 1
