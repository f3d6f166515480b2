"""A consumer group that reads on whatever happens, and what its commits are worth.

with GroupReader(cluster.bootstrap_servers, "t", "g") as reader:
    ...faults...
    reader.await_commit()
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import TracebackType

from confluent_kafka import Consumer, KafkaException

from tests.support.waiting import wait_until


@dataclass(slots=True)
class GroupReader:
    """One member in a thread, which commits after each piece that it has read.

    `found` maps (partition, offset) to the value. `committed` is what the coordinator has acknowledged;
    `forgotten` is what was read again although it lay below.
    """

    bootstrap_servers: str
    topic: str
    group: str
    found: dict[tuple[int, int], int] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    forgotten: list[tuple[int, int]] = field(default_factory=list)
    commits: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> GroupReader:
        self._thread = threading.Thread(target=self._run, name="group")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def await_commit(self) -> None:
        """Wait for a commit that began after now."""
        wanted = self.commits + 2
        wait_until(lambda: self.commits >= wanted, f"{self.group} to commit")

    def _run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6_000,
                "socket.timeout.ms": 5_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        try:
            consumer.subscribe([self.topic])
            while not self._stop.is_set():
                if self._read(consumer):
                    self._commit(consumer)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> bool:
        read = False
        for message in consumer.consume(500, 0.1):
            if message.error() is not None:
                continue
            partition, offset = message.partition(), message.offset()
            if offset < self.committed.get(partition, 0):
                self.forgotten.append((partition, offset))
            self.found[partition, offset] = int(message.value())
            read = True
        return read

    def _commit(self, consumer: Consumer) -> None:
        try:
            committed = consumer.commit(asynchronous=False)
        except KafkaException:  # the coordinator moves, or the group rebalances
            return
        self.committed.update({each.partition: each.offset for each in committed if each.error is None})
        self.commits += 1
