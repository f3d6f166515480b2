"""What producers and readers of the simulation share: they find leaders, dial them, and forget both when
something goes wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from protocol import messages as m
from runtime.system import Env
from tests.simulation.caller import Caller, CallLost
from tests.simulation.history import History, TopicPartition
from tests.simulation.world import World

REQUEST_TIMEOUT_S = 1.5
DIAL_TIMEOUT_S = 0.6
BACKOFF_S = (0.01, 0.15)

RETRIABLE = {3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 56, 72, 74, 75, 76, 78, 100}
"""Errors after which a client looks for the leader again: not there, not the leader, a failed disk."""


@dataclass(slots=True)
class Leader:
    """Where a partition is, as the last metadata said."""

    node_id: int
    epoch: int
    topic_id: bytes


class Client:
    """See the module. `stopping` asks it to end what it has begun and begin nothing more."""

    def __init__(
        self,
        world: World,
        env: Env,
        name: str,
        history: History,
        bootstrap: Sequence[tuple[str, int]],
        topics: Sequence[str],
        slow: float = 0.0,
    ) -> None:
        self.world, self.env, self.name, self.history = world, env, name, history
        self.chance = world.chance(name)
        self.stopping = False
        self.leaders: dict[TopicPartition, Leader] = {}
        self.bootstrap, self._topics, self._slow = list(bootstrap), list(topics), slow
        self._addresses: dict[int, tuple[str, int]] = {}
        self._callers: dict[object, Caller] = {}
        self._dialing = asyncio.Lock()

    async def back_off(self) -> None:
        low, high = BACKOFF_S
        await asyncio.sleep(low + (high - low) * self.chance.random())

    async def leader_of(self, partition: TopicPartition) -> tuple[Caller, Leader]:
        """A connection to the leader. Raises CallLost."""
        if partition not in self.leaders:
            await self.refresh()
        leader = self.leaders.get(partition)
        if leader is None or leader.node_id not in self._addresses:
            raise CallLost(f"{partition} has no leader")
        return await self.caller_for(leader.node_id, self._addresses[leader.node_id]), leader

    async def caller_for(self, key: object, address: tuple[str, int]) -> Caller:
        """The connection to an address that is kept under a key. Raises CallLost."""
        async with self._dialing:
            caller = self._callers.get(key)
            if caller is None or caller.lost:
                caller = await Caller.dial(
                    self.world, self.env.network, self.name, self.chance, address, self._slow, DIAL_TIMEOUT_S
                )
                self._callers[key] = caller
            return caller

    async def refresh(self) -> None:
        """Ask any broker where the partitions are. Raises CallLost."""
        address = self.chance.choice(self.bootstrap)
        caller = await self.caller_for(("bootstrap", address), address)
        names = [m.MetadataRequest.MetadataRequestTopic(name=topic) for topic in self._topics]
        answer = await caller.ask(
            m.MetadataRequest(topics=names, allow_auto_topic_creation=False), REQUEST_TIMEOUT_S
        )
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for topic in answer.topics:
            for each in topic.partitions:
                partition = (topic.name, each.partition_index)
                if each.error_code or each.leader_id < 0:
                    self.leaders.pop(partition, None)
                else:
                    self.leaders[partition] = Leader(each.leader_id, each.leader_epoch, topic.topic_id)

    def forget(self, partition: TopicPartition) -> None:
        """The leader may be another one by now."""
        self.leaders.pop(partition, None)

    def close(self) -> None:
        for caller in self._callers.values():
            caller.close()


async def create_topics(client: Client, wanted: m.Message) -> None:
    """Create topics with one request and insist on it, whatever happens; any broker may be asked."""
    while True:
        try:
            address = client.chance.choice(client.bootstrap)
            caller = await client.caller_for(("bootstrap", address), address)
            answer = await caller.ask(wanted, REQUEST_TIMEOUT_S)
        except CallLost:
            await client.back_off()
            continue
        if all(topic.error_code in (0, 36) for topic in answer.topics):  # 36: it exists
            return
        await client.back_off()
