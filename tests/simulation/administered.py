"""Three to five brokers on bad days with an administrator who moves, makes and deletes what they have.

One topic comes and goes: each time it is another one, with clients of its own that know it by its id.
Topics grow, and new partitions get clients, too. In some runs there is a topic that may have unclean leaders:
what it loses then is forgiven, and nothing else.
"""

from __future__ import annotations

import random

from replication.metadata.payloads import TopicPayload
from tests.simulation.administrator import Administrator, Estate
from tests.simulation.client import Client
from tests.simulation.cluster import QuietCluster
from tests.simulation.faults import Faults, Kind
from tests.simulation.history import TopicPartition
from tests.simulation.producer import Producer, ProducerKind
from tests.simulation.reader import Reader
from tests.simulation.scenario import FLUSHED, PLAIN, RISKY

PASSING = "passing"
KIND = ProducerKind(acks=-1, idempotent=True, think_s=0.3)


class Cluster(QuietCluster):
    """See the module."""

    steady: tuple[str, ...] = (FLUSHED, PLAIN)

    def __init__(self, seed: int) -> None:
        chance = random.Random(f"{seed}/shape")
        self.brokers = chance.choice((3, 3, 4, 5))
        self.topics = (*self.steady, *self.risky(chance))
        super().__init__(seed)
        self._lives: dict[bytes, str] = {}  # of the topic that comes and goes, by id: our name for it
        self._passing: dict[str, tuple[bytes, list[TopicPartition], list[Client]]] = {}
        self._grown = 0
        self.tree.on_topic = self._topic_written
        self.tree.on_topic_gone = self._topic_gone
        self.tree.may_be_unclean = lambda topic: topic == RISKY

    def risky(self, chance: random.Random) -> tuple[str, ...]:
        """The topic that may have unclean leaders, if there is one."""
        return (RISKY,) if chance.random() < 0.3 else ()

    def kinds(self, faults: Faults) -> list[Kind]:
        return [
            *super().kinds(faults),
            faults.long_pause,
            faults.expire,
            faults.expire_all,
            faults.lose_metadata,
        ]

    def begin_more(self) -> None:
        estate = Estate(
            brokers=range(1, self.brokers + 1),
            steady=self.steady,
            passing=PASSING,
            risky=RISKY if RISKY in self.topics else "",
            partitions=self.partitions,
            exists=lambda topic: topic in self._passing,
        )
        self._begin(self._client(Administrator, "a1", estate=estate))

    # -- topics

    def _topic_written(self, topic: str, payload: TopicPayload) -> None:
        topic_id = payload.topic_id or b""
        if topic == PASSING:
            self._comes(topic_id, payload)
        elif topic in self.steady:
            for index in sorted(payload.assignment):
                if (topic, index) not in self.partitions:
                    self.partitions.append((topic, index))
                    self.world.after(0, self._use_more, (topic, index))

    def _comes(self, topic_id: bytes, payload: TopicPayload) -> None:
        if topic_id in self._lives:
            return
        name = f"{PASSING}/{len(self._lives) + 1}"
        self._lives[topic_id] = name
        partitions = [(name, index) for index in sorted(payload.assignment)]
        self._passing[PASSING] = topic_id, partitions, []
        self.world.after(0, self._use_passing, name)

    def _topic_gone(self, topic: str) -> None:
        if topic == PASSING:
            self.world.trace.mark("gone")
            for client in self._passing.pop(PASSING)[2]:
                client.gone = True

    def passing(self) -> tuple[dict[str, bytes], list[TopicPartition]]:
        if PASSING not in self._passing:
            return {}, []
        topic_id, partitions, _ = self._passing[PASSING]
        return {self._lives[topic_id]: topic_id}, partitions

    # -- clients

    def _use_passing(self, name: str) -> None:
        ids, partitions = self.passing()
        if self.stopping or name not in ids:
            return
        for number, (of, more) in enumerate(((Producer, {"kind": KIND}), (Reader, {"sessions": True}))):
            client = self._client(
                of, f"t{len(self._lives)}.{number}", [name], ids, partitions=partitions, **more
            )
            self._passing[PASSING][2].append(client)
            self._begin(client)

    def _use_more(self, partition: TopicPartition) -> None:
        if self.stopping:
            return
        self._grown += 1
        self._begin(self._client(Producer, f"m{self._grown}", kind=KIND, partitions=[partition]))
        self._begin(self._client(Reader, f"n{self._grown}", partitions=[partition]))


class ClusterOnBadDisks(Cluster):
    """The same with disks that lose power, fail and run full, for topics that sync each append."""

    steady = (FLUSHED,)

    def risky(self, chance: random.Random) -> tuple[str, ...]:
        return ()

    def keeps(self, topic: str) -> bool:
        return topic in (FLUSHED, PASSING)

    def faults(self) -> Faults:
        faults = super().faults()
        faults.promised_on_disk = lambda partition: self.keeps(partition[0].partition("/")[0])
        return faults

    def kinds(self, faults: Faults) -> list[Kind]:
        return [
            faults.lose_power,
            faults.lose_power_in_a_write,
            faults.fail_disk,
            faults.fill_disk,
            *super().kinds(faults),
        ]
