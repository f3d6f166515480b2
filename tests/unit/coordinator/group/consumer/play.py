"""Consumer groups over a real runtime and a log in memory, with members that behave as clients do.

play = Play({"t": 4})
a = play.client("a", "t")
a.join()
a.sync()              # do what it was told, then say so
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from coordinator.group.classic import events as ev
from coordinator.group.consumer.heartbeat import Caller
from coordinator.group.consumer.settings import ConsumerSettings
from coordinator.group.manager import RETENTION_MS, GroupManager
from coordinator.group.room import Room
from coordinator.group.shard import GroupShard, ShardSettings
from coordinator.ports import TopicFacts
from coordinator.runtime import CoordinatorRuntime
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.entropy import SeededRandom
from tests.unit.coordinator.memory_topic import MemoryTopic, Tasks, VirtualTime

GROUP = "g"
TABLES = (
    "epochs",
    "target_epochs",
    "members",
    "targets",
    "current",
    "regexes",
    "holders",
    "static_ids",
    "regex_users",
)


def id_of(name: str, generation: int = 0) -> bytes:
    return name.encode().ljust(14, b"\0")[:14] + generation.to_bytes(2, "big")


class FakeTopics:
    """A cluster whose topics the test makes, grows and deletes."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.facts: dict[str, TopicFacts] = {}
        self.changes = 0
        self.added = 1
        self.generation = 0
        for name, count in counts.items():
            self.put(name, count)

    def put(self, name: str, count: int) -> None:
        known = self.facts.get(name)
        if known is None:
            self.added += 1
            self.generation += 1
        topic_id = id_of(name, self.generation) if known is None else known.topic_id
        self.facts[name] = TopicFacts(name, topic_id, count)
        self.changes += 1

    def delete(self, name: str) -> None:
        del self.facts[name]
        self.changes += 1

    def version(self) -> int:
        return self.changes

    def names_version(self) -> int:
        return self.added

    def topic(self, name: str) -> TopicFacts | None:
        return self.facts.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return next((facts.name for facts in self.facts.values() if facts.topic_id == topic_id), None)

    def names(self) -> Iterable[str]:
        return list(self.facts)


class Play:
    """One shard, its log, and its time."""

    def __init__(self, counts: dict[str, int] | None = None, **settings: Any) -> None:
        self.topics = FakeTopics({"t": 4} if counts is None else counts)
        self.topic, self.time, self.tasks = MemoryTopic(), VirtualTime(), Tasks()
        self.configs = {
            "consumer.session.timeout.ms": 45_000,
            "consumer.heartbeat.interval.ms": 5_000,
            "consumer.assignment.interval.ms": 0,
        }
        self.settings = ConsumerSettings(group_config=lambda group, name: self.configs[name], **settings)
        self.auto_commit = True
        self.room = Room()
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Load the log into a new runtime, as after a restart."""
        self.starts += 1
        shard_settings = ShardSettings(
            ev.GroupSettings(initial_rebalance_delay_ms=0, room=self.room),
            topics=self.topics,
            consumer=self.settings,
        )

        def make(context: Any) -> GroupShard:
            self.shard = GroupShard(
                context, self.time, SeededRandom(b"play %d" % self.starts), shard_settings
            )
            return self.shard

        self.runtime = CoordinatorRuntime(
            "__consumer_offsets", self.topic, self.topic, self.time, self.time, self.tasks, make
        )
        self.manager = GroupManager(self.runtime, self.time, self.time, RETENTION_MS)
        self.runtime.start(1)
        self.runtime.load(0, 1)
        self.tasks.run()

    def restart(self) -> None:
        self.runtime.close()
        self.topic.undecided.clear()
        self.start()

    @property
    def tables(self) -> Any:
        return self.shard.consumer.tables

    def snapshot(self) -> dict[str, list[Any]]:
        """All cells of all tables."""
        return {name: sorted(getattr(self.tables, name).items(), key=repr) for name in TABLES}

    def commit(self) -> None:
        self.topic.commit(len(self.topic.undecided))

    def advance(self, ms: int) -> None:
        """Let time pass; what timers append is committed."""
        while ms > 0:
            self.time.advance(min(1000, ms))
            ms -= 1000
            if self.auto_commit:
                self.commit()

    def settle(self) -> None:
        """Let what waits for the next turn happen."""
        for _ in range(6):
            self.time.advance(1)
            self.commit()

    def request(self, call: Callable[..., None], *arguments: Any) -> Any:
        """A request whose answer comes by a call; (error, response)."""
        answers: list[Any] = []
        call(*arguments, lambda error, response: answers.append((error, response)))
        if self.auto_commit:
            self.commit()
        return answers

    def client(self, member_id: str, *topics: str, **said: Any) -> Client:
        return Client(self, member_id, topics, **said)

    def described(self) -> Any:
        return self.manager.consumer_describe(GROUP)

    def epoch(self) -> int:
        return self.tables.epoch(GROUP).epoch

    def classic(self, make: Callable[[int], Any]) -> list[Any]:
        """A request of the classic protocol; its answers so far."""
        answers: list[Any] = []
        self.manager.handle(GROUP, make, answers.append)
        if self.auto_commit:
            self.commit()
        return answers


class Client:
    """A consumer: it has partitions until it has revoked them, and says what it has when that changes."""

    def __init__(
        self,
        play: Play,
        member_id: str,
        topics: Sequence[str] = (),
        *,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = 30_000,
    ) -> None:
        self.play, self.id, self.topics, self.regex = play, member_id, topics, regex
        self.instance_id, self.assignor = instance_id, assignor
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = 0
        self.has: dict[bytes, frozenset[int]] = {}
        self.told: dict[bytes, frozenset[int]] = {}

    def beat(self, *, owned: dict[bytes, Iterable[int]] | None = None, **fields: Any) -> Any:
        """A heartbeat; the response."""
        parts = None
        if owned is not None:
            parts = [
                m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=sorted(numbers))
                for topic, numbers in owned.items()
            ]
        version = fields.pop("version", 1)
        fields = {"member_id": self.id, "member_epoch": self.epoch, "instance_id": self.instance_id, **fields}
        request = m.ConsumerGroupHeartbeatRequest(group_id=GROUP, topic_partitions=parts, **fields)
        answers = self.play.request(
            self.play.manager.consumer_heartbeat, request, version, Caller("client", "/host")
        )
        if not answers:
            return None
        ((error, response),) = answers
        if error is not ErrorCode.NONE:
            return m.ConsumerGroupHeartbeatResponse(error_code=error)
        if response.error_code == 0:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.told = {
                    each.topic_id: frozenset(each.partitions) for each in response.assignment.topic_partitions
                }
        return response

    def join(self, **fields: Any) -> Any:
        self.has = {}
        said = {
            "member_epoch": 0,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": list(self.topics),
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            **fields,
        }
        return self.beat(owned={}, **said)

    def obey(self) -> None:
        """Revoke and take on what it was told."""
        self.has = self.told

    def sync(self) -> Any:
        """Obey, and say what it has now."""
        self.obey()
        return self.beat(owned=self.has)

    def leave(self, epoch: int = -1) -> Any:
        answer = self.beat(member_epoch=epoch)
        self.has = self.told = {}
        return answer

    def partitions(self, topic: str = "t") -> list[int]:
        """What it has of a topic, obeying first."""
        self.obey()
        facts = self.play.topics.facts[topic]
        return sorted(self.has.get(facts.topic_id, ()))


def together(*clients: Client) -> None:
    """Beat until everybody has settled."""
    for _ in range(6):
        for client in clients:
            assert client.sync().error_code == 0
