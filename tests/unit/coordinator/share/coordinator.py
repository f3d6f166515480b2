"""A share coordinator of one partition over an internal topic in memory, loaded."""

from __future__ import annotations

from typing import Any

from coordinator.runtime import Context, CoordinatorRuntime
from coordinator.share.batches import StateBatch
from coordinator.share.manager import ShareStateManager
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer, ShardSettings, ShareShard, StateWrite
from tests.unit.coordinator.memory_topic import MemoryTopic, Tasks, VirtualTime

TOPIC_ID = b"topic-id-16-long"
KEY = ShareKey("g", TOPIC_ID, 0)


class Coordinator:
    """Operations are committed at once, unless `hold` is set."""

    def __init__(
        self, topic: MemoryTopic | None = None, updates_per_snapshot: int = 3, time: VirtualTime | None = None
    ) -> None:
        self.topic = MemoryTopic() if topic is None else topic
        self.time, self.tasks = time or VirtualTime(), Tasks()
        self.partition_counts = {TOPIC_ID: 4}
        self.updates_per_snapshot = updates_per_snapshot
        self.hold = False
        self.runtime = CoordinatorRuntime(
            "__share_group_state", self.topic, self.topic, self.time, self.time, self.tasks, self._make
        )
        self.manager = ShareStateManager(self.runtime, cold_after_ms=1000)
        self.runtime.start(1)
        self.runtime.load(0, 1)
        self.tasks.run()

    def _make(self, context: Context) -> ShareShard:
        settings = ShardSettings(
            lambda topic_id: self.partition_counts.get(topic_id, 0), self.updates_per_snapshot
        )
        self.shard = ShareShard(context, self.time, settings)
        return self.shard

    def ask(self, what: str, *arguments: Any, key: ShareKey = KEY) -> Answer:
        """The answer of a manager's operation, which has come."""
        answers: list[Answer] = []
        getattr(self.manager, what)(key, *arguments, answers.append)
        self.commit()
        [answer] = answers
        return answer

    def commit(self) -> None:
        while self.topic.undecided and not self.hold:
            self.topic.commit()

    def write(
        self,
        *batches: tuple[int, int, int, int],
        start: int = 0,
        leader_epoch: int = 0,
        state_epoch: int = 0,
        complete: int = -1,
        key: ShareKey = KEY,
    ) -> Answer:
        made = [StateBatch(*each) for each in batches]
        return self.ask("write", StateWrite(state_epoch, leader_epoch, start, complete, made), key=key)

    def again(self) -> Coordinator:
        """A coordinator that has loaded what this one has in its log."""
        other = Coordinator.__new__(Coordinator)
        other.partition_counts = self.partition_counts
        Coordinator.__init__(other, self.topic, self.updates_per_snapshot, self.time)
        return other

    def states(self) -> dict[ShareKey, Any]:
        return dict(self.shard._all())
