"""A shard of offsets alone, and a coordinator over it, for tests of the runtime, the loader and offsets."""

from __future__ import annotations

from coordinator.group.offsets import Commit, Offsets
from coordinator.group.records import UnknownRecords
from coordinator.result import NO_PRODUCER, Producer, Result
from coordinator.runtime import Context, CoordinatorRuntime
from protocol.errors import ErrorCode
from tests.unit.coordinator.memory_topic import MemoryTopic, Tasks, VirtualTime

Answers = list[tuple[ErrorCode, object]]


class OffsetShard:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.offsets = Offsets(context.journal, UnknownRecords())
        self.loaded_ms: int | None = None
        self.unloaded = 0

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        self.offsets.replay(key, value, offset, producer_id)

    def replay_end_marker(self, producer_id: int, commit: bool) -> None:
        self.offsets.replay_end_marker(producer_id, commit)

    def on_loaded(self, now_ms: int) -> None:
        self.loaded_ms = now_ms
        self.offsets.loaded()

    def on_unloaded(self) -> None:
        self.unloaded += 1


class Coordinator:
    """A runtime over `topic`; partition 0 is loaded at epoch 3."""

    def __init__(self, topic: MemoryTopic | None = None, *, load: bool = True) -> None:
        self.topic = MemoryTopic() if topic is None else topic
        self.time = VirtualTime()
        self.tasks = Tasks()
        self.shards: list[OffsetShard] = []
        self.runtime = CoordinatorRuntime(
            "__consumer_offsets", self.topic, self.topic, self.time, self.time, self.tasks, self._make
        )
        self.runtime.start(1)
        if load:
            self.load()

    def _make(self, context: Context) -> OffsetShard:
        self.shards.append(OffsetShard(context))
        return self.shards[-1]

    def load(self, epoch: int = 3) -> None:
        self.runtime.load(0, epoch)
        self.tasks.run()

    @property
    def offsets(self) -> Offsets:
        return self.shards[-1].offsets

    def commit(
        self, group: str, offset: int, *, producer: Producer = NO_PRODUCER, partition: int = 0
    ) -> Answers:
        """Commit for topic "t"; the list gets the answer when there is one."""
        answers: Answers = []

        def operation(shard: OffsetShard) -> Result[str]:
            records, errors = shard.offsets.commit(
                group, [Commit("t", partition, offset)], self.time.now_ms()
            )
            assert errors == [ErrorCode.NONE]
            return Result(records, f"{group}={offset}", producer=producer)

        self.runtime.write(0, operation, lambda error, response: answers.append((error, response)))
        return answers

    def end(self, producer_id: int, commit: bool) -> Answers:
        answers: Answers = []
        self.runtime.write_end_marker(
            0, producer_id, 0, 1, commit, lambda error, response: answers.append((error, response))
        )
        return answers

    def fetched(self, group: str, partition: int = 0, *, stable: bool = False) -> int | ErrorCode:
        """What OffsetFetch says: the offset, or the error."""
        found = self.runtime.read(
            0, lambda s: s.offsets.fetch(group, [("t", partition)], require_stable=stable)
        )
        return found[0].error or found[0].offset
