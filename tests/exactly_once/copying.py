"""A copier under faults: started again whenever it has ended; the copy is compared with the source."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.exactly_once.copier import PARTITIONS
from tests.support.tools import CHECKOUT
from tests.support.waiting import wait_until

SOURCE, TARGET = "source", "target"
LIMIT_S = 240.0
READ_S = 120.0


class Copying:
    """Keeps one copier running while it is entered. `log` has what the copiers said at their ends.

    No process of it, a paused one neither, outlives the block.
    """

    def __init__(self, client: str, servers: str, name: str, log: Path) -> None:
        self._command = [
            sys.executable, "-m", "tests.exactly_once.copier", client, servers, SOURCE, TARGET, name,
        ]  # fmt: skip
        self.log = log
        self._all: list[subprocess.Popen[bytes]] = []
        self.process = self._start()

    def __enter__(self) -> Copying:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._all:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=CHECKOUT
            )
        self._all.append(process)
        return process

    def kill(self) -> None:
        """As the machine's end would be."""
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """Start another where the copier has ended."""
        if self.process.poll() is not None:
            self.process = self._start()

    def replace(self) -> subprocess.Popen[bytes]:
        """Stop the copier as a long pause does, and start another of the same name; returns the one that
        stands, for a SIGCONT.
        """
        paused = self.process
        paused.send_signal(signal.SIGSTOP)
        self.process = self._start()
        return paused

    def await_copied(self, servers: str, count: int, what: str) -> None:
        """Wait until so many records are in the copy and committed, whatever it takes."""
        self.await_reached(lambda: committed_end(servers) >= count, what)

    def await_reached(self, reached: Callable[[], bool], what: str) -> None:
        """Wait for something that the copier brings about, which is started again whenever it has ended."""

        def reached_by_some() -> bool:
            self.again()
            return reached()

        try:
            wait_until(reached_by_some, what, LIMIT_S)
        except TimeoutError as error:
            said = self.log.read_text(errors="replace")[-20_000:]
            lives = "runs" if self.process.poll() is None else "has ended"
            raise AssertionError(f"{error}; copier {len(self._all)} {lives}; they said:\n{said}") from error


def fill(servers: str, count: int) -> None:
    """Numbers as values, one key for each tenth of them, to partitions in turn."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0})
    for number in range(count):
        producer.produce(SOURCE, b"%d" % number, b"key-%d" % (number % 10), number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(READ_S) == 0


def committed_end(servers: str) -> int:
    """How many offsets of the copy are before its last stable offsets: records and markers."""
    return sum(high for _, high in _bounds(servers))


def _bounds(servers: str) -> list[tuple[int, int]]:
    reader = _reader(servers)
    try:
        return [
            reader.get_watermark_offsets(TopicPartition(TARGET, index), timeout=30)
            for index in range(PARTITIONS)
        ]
    except Exception:  # a broker is gone
        return []
    finally:
        reader.close()


def _reader(servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )


def read_committed(servers: str, topic: str) -> list[list[tuple[bytes | None, bytes | None]]]:
    """(key, value) of each partition of a topic, to the end of what is committed."""
    found: list[list[tuple[bytes | None, bytes | None]]] = [[] for _ in range(PARTITIONS)]
    reader = _reader(servers)
    reader.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    deadline = time.monotonic() + READ_S
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"the end of {topic} was not reached"
        for message in reader.consume(1000, 1.0):
            if message.error() is None:
                found[message.partition()].append((message.key(), message.value()))
            elif message.error().name() == "_PARTITION_EOF":
                ended.add(message.partition())
    reader.close()
    return found


def await_whole(copying: Copying, servers: str, count: int) -> None:
    """Wait until the copy has as many committed records as the source, and compare the two."""
    copying.await_reached(
        lambda: sum(map(len, read_committed(servers, TARGET))) >= count, f"{count} records in the copy"
    )
    assert read_committed(servers, TARGET) == read_committed(servers, SOURCE)
