"""A transaction coordinator of one partition over an internal topic in memory, loaded."""

from __future__ import annotations

from typing import Any

from coordinator.runtime import Context, CoordinatorRuntime
from coordinator.transaction.manager import TransactionManager
from coordinator.transaction.shard import Producer, ShardSettings, TransactionShard
from coordinator.transaction.state import TopicPartition, Transaction
from coordinator.transaction.transitions import Known, Need
from protocol.errors import ErrorCode
from tests.unit.coordinator.memory_topic import MemoryTopic, Tasks, VirtualTime

ID = "t"
TIMEOUT_MS = 60_000
EXPIRATION_MS = 1_000_000

Answer = tuple[ErrorCode, Any]


class Coordinator:
    """Appends are committed at once, unless `hold` is set. `told` and `gone` are what Endings was told."""

    def __init__(self, topic: MemoryTopic | None = None, time: VirtualTime | None = None) -> None:
        self.topic = MemoryTopic() if topic is None else topic
        self.time, self.tasks = time or VirtualTime(), Tasks()
        self.told: list[tuple[int, str, Transaction]] = []
        self.gone: list[int] = []
        self.unmarked: dict[str, list[TopicPartition]] = {}
        self.hold = False
        self.version = 2
        self.next_id = 1000
        self.runtime = CoordinatorRuntime(
            "__transaction_state", self.topic, self.topic, self.time, self.time, self.tasks, self._make
        )
        self.manager = TransactionManager(self.runtime, self)
        self.runtime.start(1)
        self.runtime.load(0, 1)
        self.tasks.run()

    def _make(self, context: Context) -> TransactionShard:
        settings = ShardSettings(self, lambda: self.version, EXPIRATION_MS)
        self.shard = TransactionShard(context, self.time, settings)
        return self.shard

    def decided(self, partition: int, transactional_id: str, txn: Transaction) -> None:
        self.told.append((partition, transactional_id, txn))

    def unloaded(self, partition: int) -> None:
        self.gone.append(partition)

    def left(self, partition: int, transactional_id: str) -> list[TopicPartition] | None:
        return self.unmarked.get(transactional_id)

    def commit(self) -> None:
        while self.topic.undecided and not self.hold:
            self.topic.commit()

    def ask(self, what: str, *arguments: Any) -> Answer:
        """The answer of a manager's operation, which has come."""
        answers: list[Answer] = []
        getattr(self.manager, what)(*arguments, lambda error, response: answers.append((error, response)))
        self.commit()
        [answer] = answers
        return answer

    def init(self, known: Known | None = None, name: str = ID, timeout_ms: int = TIMEOUT_MS) -> Answer:
        """InitProducerId, with a fresh id where one is needed."""
        answer = self.ask("init_producer", name, known, timeout_ms, None)
        if answer[1] is Need.ID:
            self.next_id += 1
            answer = self.ask("init_producer", name, known, timeout_ms, self.next_id)
        return answer

    def begun(self, *partitions: tuple[str, int], version: int = 0) -> Known:
        """A transaction that is open on partitions; its producer."""
        error, producer = self.init()
        assert error is ErrorCode.NONE
        assert isinstance(producer, Producer)
        known = Known(*producer)
        assert self.ask("add_partitions", ID, known, partitions, version)[0] is ErrorCode.NONE
        return known

    def end(self, known: Known, commit: bool, version: int = 0, fresh_id: int | None = None) -> Answer:
        return self.ask("end", ID, known, commit, version, fresh_id)

    def complete(self) -> None:
        """All markers of what was decided last are written."""
        partition, name, txn = self.told[-1]
        assert self.ask("complete", partition, name, txn) == (ErrorCode.NONE, True)

    def again(self) -> Coordinator:
        """A coordinator that has loaded what this one has in its log."""
        return Coordinator(self.topic, self.time)

    @property
    def txn(self) -> Transaction:
        found = self.shard.get(ID)
        assert found is not None
        return found
