"""A copier under faults: started again whenever it has ended; the copy is compared with the source."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.tools import CHECKOUT
from tests.support.waiting import wait_until

PARTITIONS = 3
SOURCE, TARGET = "source", "target"
LIMIT_S = 240.0


class Copying:
    """Keeps one copier running while it is entered. `log` has what the copiers said at their ends."""

    def __init__(self, client: str, servers: str, name: str, log: Path) -> None:
        self._command = [
            sys.executable, "-m", "tests.exactly_once.copier", client, servers, SOURCE, TARGET, name,
        ]  # fmt: skip
        self.log = log
        self.starts = 0
        self.process = self._start()

    def __enter__(self) -> Copying:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=CHECKOUT
            )

    def kill(self) -> None:
        """As the machine's end would be."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """Start another where the copier has ended."""
        if self.process.poll() is not None:
            self.process = self._start()

    def replace(self) -> subprocess.Popen[bytes]:
        """Stop the copier as a long pause does, and start another of the same name; the one that stands."""
        paused = self.process
        paused.send_signal(signal.SIGSTOP)
        self.process = self._start()
        return paused

    def await_copied(self, servers: str, count: int, what: str) -> None:
        """Wait until so many records are in the copy and committed, whatever it takes."""

        def copied() -> bool:
            self.again()
            return committed_end(servers) >= count

        try:
            wait_until(copied, what, LIMIT_S)
        except BaseException:
            print(self.log.read_text(errors="replace")[-4000:])
            raise


def fill(servers: str, count: int) -> None:
    """Numbers as values, one key for each tenth of them, to partitions in turn."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0})
    for number in range(count):
        producer.produce(SOURCE, b"%d" % number, b"key-%d" % (number % 10), number % PARTITIONS)
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


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
    while len(ended) < PARTITIONS:
        for message in reader.consume(1000, 1.0):
            if message.error() is None:
                found[message.partition()].append((message.key(), message.value()))
            elif message.error().name() == "_PARTITION_EOF":
                ended.add(message.partition())
    reader.close()
    return found


def await_whole(copying: Copying, servers: str, count: int) -> None:
    """Wait until the copy has as many committed records as the source, and compare the two."""

    def whole() -> bool:
        copying.again()
        return sum(map(len, read_committed(servers, TARGET))) >= count

    try:
        wait_until(whole, "the whole copy", LIMIT_S)
    except BaseException:
        print(copying.log.read_text(errors="replace")[-4000:])
        raise
    assert read_committed(servers, TARGET) == read_committed(servers, SOURCE)
