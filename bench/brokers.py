"""The brokers under test: ours, Apache Kafka 4.4.0, or any that runs already."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench import machine
from bench.offsets import end_offsets
from ottla.client import KafkaClient
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess

KAFKA_VERSION = "4.4.0"
KAFKA_JVM = ("-Xmx1g",)
STALL_LINE = r"The event loop was held up for at most (\d+) ms"
WORKED = r", of which it worked (\d+) ms"


class Broker:
    """One broker. `process` is None if it is not ours to start, `pid` is None where it cannot be seen.

    `worked_ms`: once it has stopped, how long its loop computed during the longest stall.
    """

    def __init__(self, name: str, host: str, port: int) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.process: OttlaProcess | KafkaProcess | None = None
        self._foreign_pid: int | None = None
        self.worked_ms = 0

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int | None:
        if self.process is not None:
            return self.process.pid
        if self._foreign_pid is None:
            self._foreign_pid = machine.listener_pid(self.port)
        return self._foreign_pid

    def cpu_seconds(self) -> float:
        """CPU time so far; 0 where it cannot be seen."""
        return machine.cpu_seconds(self.pid) if self.pid is not None else 0.0

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until all its partitions have leaders."""
        with KafkaClient(self.bootstrap, "bench", timeout_s=120) as client:
            client.create_topic(name, partitions, config=dict(config or {}))
        end_offsets(self.host, self.port, name, partitions)

    def delete_topic(self, name: str) -> None:
        with KafkaClient(self.bootstrap, "bench", timeout_s=120) as client:
            client.delete_topic(name)

    def stop(self) -> int | None:
        """End it and remove its data, if it was ours to start.

        Returns the longest stall of its event loop in ms, where it tells one.
        """
        if self.process is None:
            return None
        self.process.stop()
        output = self.process.output_path
        said = output.read_text(errors="replace") if output.exists() else ""
        told = re.search(STALL_LINE + WORKED, said)
        shutil.rmtree(self.process.directory, ignore_errors=True)
        if told is None:
            return None
        self.worked_ms = int(told.group(2))
        return int(told.group(1))


def make(kind: str) -> Broker:
    """A broker of our own that is not started yet: "ottla" or "kafka"."""
    directory = Path(tempfile.mkdtemp(prefix=f"bench-{kind}-"))
    process: OttlaProcess | KafkaProcess
    if kind == "ottla":
        process = OttlaProcess(directory=directory)
    else:
        process = KafkaProcess(KAFKA_VERSION, directory=directory, jvm_flags=KAFKA_JVM)
    broker = Broker(kind, process.host, process.port)
    broker.process = process
    return broker


def start(kind: str) -> Broker:
    """The same, running."""
    broker = make(kind)
    assert broker.process is not None
    try:
        broker.process.start()
    except BaseException:
        shutil.rmtree(broker.process.directory, ignore_errors=True)
        raise
    return broker


def running_at(address: str) -> Broker:
    """A broker that somebody else started, by "host:port"."""
    host, _, port = address.rpartition(":")
    return Broker(address, host.strip("[]"), int(port))
