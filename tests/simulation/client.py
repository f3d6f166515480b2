"""What producers and readers of the simulation share: they find leaders, dial them, and forget both when
something goes wrong.

As Kafka's clients, they do not believe a broker that has an older leader epoch than they were told before.

A topic that is deleted and made again is another one each time, with a name of its own here: `passing/2` is
the second `passing`. Who works with such a one asks by its id only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol import messages as m
from runtime.system import Env
from tests.simulation.caller import BY_ID, OLDEST, Caller, CallLost
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


def wire_name(topic: str) -> str:
    """What brokers call the topic."""
    return topic.partition("/")[0]


class Client:
    """See the module. `stopping` asks it to end what it has begun and begin nothing more; `gone` says that
    its topics are being deleted. `ids`: the topic ids that are meant, of topics that come and go.
    """

    def __init__(
        self,
        world: World,
        env: Env,
        name: str,
        history: History,
        bootstrap: Sequence[tuple[str, int]],
        topics: Sequence[str],
        slow: float = 0.0,
        ids: Mapping[str, bytes] | None = None,
    ) -> None:
        self.world, self.env, self.name, self.history = world, env, name, history
        self.chance = world.chance(name)
        self.stopping = self.gone = False
        self.controller_id = -1
        self._meant = dict(ids or {})
        self.leaders: dict[TopicPartition, Leader] = {}
        self.bootstrap, self._topics, self._slow = list(bootstrap), list(topics), slow
        self._epochs: dict[tuple[bytes, int], int] = {}  # the greatest of which it was told, by topic id
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
                    self.world,
                    self.env.network,
                    self.name,
                    self.chance,
                    address,
                    self._slow,
                    DIAL_TIMEOUT_S,
                    BY_ID if self._meant else OLDEST,
                )
                self._callers[key] = caller
            return caller

    async def refresh(self) -> None:
        """Ask any broker where the partitions are. Raises CallLost."""
        address = self.chance.choice(self.bootstrap)
        caller = await self.caller_for(("bootstrap", address), address)
        known = {wire_name(topic): topic for topic in self._topics}
        names = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in known]
        answer = await caller.ask(
            m.MetadataRequest(topics=names, allow_auto_topic_creation=False), REQUEST_TIMEOUT_S
        )
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self.controller_id = answer.controller_id
        for topic in answer.topics:
            name = known[topic.name]
            meant = topic.topic_id == self._meant.get(name, topic.topic_id)
            for each in topic.partitions:
                partition, key = (name, each.partition_index), (topic.topic_id, each.partition_index)
                old = each.leader_epoch < self._epochs.get(key, 0)  # the broker knows less than we do
                if each.error_code or each.leader_id < 0 or old or not meant:
                    self.leaders.pop(partition, None)
                else:
                    self._epochs[key] = each.leader_epoch
                    self.leaders[partition] = Leader(each.leader_id, each.leader_epoch, topic.topic_id)

    async def controller(self) -> Caller:
        """A connection to the controller. Raises CallLost."""
        if self.controller_id not in self._addresses:
            await self.refresh()
        if self.controller_id not in self._addresses:
            raise CallLost("no controller is known")
        return await self.caller_for(self.controller_id, self._addresses[self.controller_id])

    def forget_controller(self) -> None:
        """It may be another one by now."""
        self.controller_id = -1

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
