"""Share groups over a real runtime and a log in memory, with a share coordinator that the test decides for.

play = Play({"t": 4})
a = play.client("a", "t")
a.join()
play.answer()         # the share coordinator has made what it was asked for
a.beat()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coordinator.group.classic import events as ev
from coordinator.group.manager import RETENTION_MS, GroupManager
from coordinator.group.shard import GroupShard, ShardSettings
from coordinator.group.share.groups import ShareGroups
from coordinator.group.share.ports import Cell, Errors, ShareSettings, StartOffsets, Summary
from coordinator.group.share.requests import ShareRequests
from coordinator.group.share.state_partitions import Partitions
from coordinator.runtime import CoordinatorRuntime
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.entropy import SeededRandom
from tests.unit.coordinator.group.consumer.play import FakeTopics
from tests.unit.coordinator.memory_topic import MemoryTopic, Tasks, VirtualTime

GROUP = "g"
TABLES = ("epochs", "target_epochs", "members", "targets", "current")


class FakePersister:
    """Notes what it is asked for; `answer` tells what came of it."""

    def __init__(self) -> None:
        self.state: dict[tuple[str, bytes, int], tuple[int, int]] = {}  # state epoch, start offset
        self.asked: list[tuple[str, list[Cell], Callable[[Errors], None]]] = []
        self.summary = Summary(ErrorCode.NONE, 5, 1, 2)

    def initialize(
        self, group_id: str, start_offsets: StartOffsets, state_epoch: int, done: Callable[[Errors], None]
    ) -> None:
        cells = [(topic_id, index) for topic_id in start_offsets for index in start_offsets[topic_id]]

        def decide(errors: Errors) -> None:
            for (topic_id, index), error in errors.items():
                if error is ErrorCode.NONE:
                    found = (state_epoch, start_offsets[topic_id][index])
                    self.state[group_id, topic_id, index] = found
            done(errors)

        self.asked.append(("initialize", cells, decide))

    def delete(self, group_id: str, partitions: Partitions, done: Callable[[Errors], None]) -> None:
        cells = [(topic_id, index) for topic_id in partitions for index in partitions[topic_id]]

        def decide(errors: Errors) -> None:
            for (topic_id, index), error in errors.items():
                if error is ErrorCode.NONE:
                    self.state.pop((group_id, topic_id, index), None)
            done(errors)

        self.asked.append(("delete", cells, decide))

    def summaries(
        self, group_id: str, partitions: Partitions, done: Callable[[dict[Cell, Summary]], None]
    ) -> None:
        done({(topic_id, index): self.summary for topic_id in partitions for index in partitions[topic_id]})


class NoLatest:
    """Every partition ends at 10."""

    def latest(self, topic: str, partition: int) -> int | ErrorCode:
        return 10


class Play:
    """One shard, its log, and its time."""

    def __init__(self, counts: dict[str, int] | None = None, **settings: Any) -> None:
        self.topics = FakeTopics({"t": 4} if counts is None else counts)
        self.topic, self.time, self.tasks = MemoryTopic(), VirtualTime(), Tasks()
        self.persister = FakePersister()
        self.settings = ShareSettings(**{"assignment_interval_ms": lambda _: 0, **settings})
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Load the log into a new runtime, as after a restart."""
        self.starts += 1
        shard_settings = ShardSettings(
            ev.GroupSettings(initial_rebalance_delay_ms=0),
            topics=self.topics,
            make_share=lambda parts: ShareGroups(parts, self.settings),
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
        self.requests = self.manager.share = ShareRequests(self.runtime, lambda: self.persister, NoLatest())
        self.runtime.start(1)
        self.runtime.load(0, 1)
        self.tasks.run()

    def restart(self) -> None:
        self.persister.asked.clear()
        self.runtime.close()
        self.topic.undecided.clear()
        self.start()

    @property
    def groups(self) -> ShareGroups:
        assert self.shard.share is not None
        return self.shard.share

    def snapshot(self) -> dict[str, list[Any]]:
        """All cells of all tables."""
        found = {name: sorted(getattr(self.groups.tables, name).items(), key=repr) for name in TABLES}
        return {**found, "states": sorted(self.groups.states.items(), key=repr)}

    def commit(self) -> None:
        self.topic.commit(len(self.topic.undecided))

    def advance(self, ms: int) -> None:
        """Let time pass; what timers append is committed."""
        self.time.advance(ms)
        self.commit()

    def answer(self, error: ErrorCode = ErrorCode.NONE, **errors: ErrorCode) -> list[tuple[str, list[Cell]]]:
        """Decide everything that the share coordinator was asked for; `errors` by topic."""
        asked, self.persister.asked = self.persister.asked, []
        for _, cells, decide in asked:
            decide({cell: errors.get(self.topics.name_of(cell[0]) or "", error) for cell in cells})
            self.commit()
        return [(what, cells) for what, cells, _ in asked]

    def id(self, name: str = "t") -> bytes:
        return self.topics.facts[name].topic_id

    def client(self, member_id: str, *topics: str) -> Client:
        return Client(self, member_id, topics or ("t",))

    def described(self) -> Any:
        return self.requests.describe(GROUP)

    def alter(self, offsets: Mapping[str, Mapping[int, int]]) -> list[Any]:
        return self._ask(self.requests.alter_offsets, GROUP, offsets)

    def delete_offsets(self, *names: str) -> list[Any]:
        return self._ask(self.requests.delete_offsets, GROUP, list(names))

    def delete_group(self) -> list[Any]:
        return self._ask(self.manager.delete_group, GROUP)

    def _ask(self, call: Callable[..., None], *arguments: Any) -> list[Any]:
        """The answers, which may come later."""
        answers: list[Any] = []
        call(*arguments, lambda *got: answers.append(got))
        self.commit()
        return answers


class Client:
    """A member; it remembers its epoch and what it was told to read."""

    def __init__(self, play: Play, member_id: str, topics: Sequence[str]) -> None:
        self.play, self.id, self.topics = play, member_id, topics
        self.epoch = 0
        self.has: dict[bytes, frozenset[int]] = {}

    def beat(self, *, committed: bool = True, **fields: Any) -> Any:
        """A heartbeat; the response, None where it is still undecided."""
        answers: list[Any] = []
        fields = {"group_id": GROUP, "member_id": self.id, "member_epoch": self.epoch, **fields}
        request = m.ShareGroupHeartbeatRequest(**fields)
        self.play.requests.heartbeat(request, "client", "/host", answers.append)
        if committed:
            self.play.commit()
        if not answers:
            return None
        [response] = answers
        if response.error_code == 0:
            self.epoch = max(response.member_epoch, 0)
            if response.assignment is not None:
                self.has = {
                    each.topic_id: frozenset(each.partitions) for each in response.assignment.topic_partitions
                }
        return response

    def join(self, **fields: Any) -> Any:
        return self.beat(**{"member_epoch": 0, "subscribed_topic_names": list(self.topics), **fields})

    def leave(self) -> Any:
        return self.beat(member_epoch=-1)

    def partitions(self, topic: str = "t") -> list[int]:
        return sorted(self.has.get(self.play.topics.facts[topic].topic_id, ()))


def settled(play: Play, *clients: Client) -> None:
    """Everybody has joined, state is made, and all have what they should."""
    for client in clients:
        assert client.join().error_code == 0
    play.answer()
    for _ in range(2):
        for client in clients:
            assert client.beat().error_code == 0
