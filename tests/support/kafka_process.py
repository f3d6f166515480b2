"""A real Apache Kafka, and its command line tools, as processes of a test.

    with KafkaProcess(overrides={"num.partitions": "1"}) as kafka:
        client.connect(kafka.bootstrap_servers)
        run_tool("GetOffsetShell", "--bootstrap-server", kafka.bootstrap_servers)

4.4.0 runs as one KRaft node. 3.9.2 does too, unless `zookeeper.connect` is among the overrides: then it is a
ZooKeeper-mode broker. Everything lies in one folder (`directory`), which goes with the process unless given.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from protocol import messages as m
from tests.support.class_archive import ClassArchive
from tests.support.jars import cache_root, kafka_jars, kafka_tools_jars
from tests.support.java import java
from tests.support.ports import free_port
from tests.support.tool_server import free_tool_server
from tests.support.waiting import wait_for_listener, wait_until
from tests.support.wire import Wire

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
TOOL_TIMEOUT_S = 120.0
ARCHIVE_TIMEOUT_S = 120.0

# Several JVMs share two cores: the serial collector and the first compiler start fastest.
JVM_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

SINGLE_NODE = {
    "num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.initial.task.delay.ms": "86400000",  # of retention: tests write records of years ago
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}

PATIENT = {"broker.session.timeout.ms": "60000"}
"""A node that stands still for longer loses its offices. The default is 9 s."""


class KafkaProcess:
    """One Apache Kafka broker on free ports of 127.0.0.1, formatted, started and stopped by pid."""

    def __init__(
        self,
        version: str = "4.4.0",
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
        jvm_flags: tuple[str, ...] | None = None,
    ) -> None:
        self.version = version
        self.overrides = dict(overrides or {})
        self.jvm_flags = jvm_flags or (*JVM_FLAGS, *classes(version).reading_flags())
        self.start_timeout_s, self.stop_timeout_s = START_TIMEOUT_S, STOP_TIMEOUT_S
        self.host = "127.0.0.1"
        self.port = free_port()
        self.controller_port = free_port()
        self.keeps_directory = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="kafka-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log_dir = self.directory / "data"
        self.properties_path = self.directory / "server.properties"
        self.output_path = self.directory / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._was_killed = False

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker is not running"
        return self.process.pid

    def properties(self) -> dict[str, str]:
        """The server.properties this broker runs with."""
        listener = f"PLAINTEXT://{self.host}:{self.port}"
        if "zookeeper.connect" in self.overrides:
            role = {"broker.id": "1", "listeners": listener}
        else:
            role = {
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.quorum.voters": f"1@{self.host}:{self.controller_port}",
                "controller.listener.names": "CONTROLLER",
                "listeners": f"{listener},CONTROLLER://{self.host}:{self.controller_port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
        # One that was killed has to sit out its own old session before it may register.
        patience = {} if self._was_killed else PATIENT
        common = {"advertised.listeners": listener, "log.dirs": str(self.log_dir)}
        return {**role, **common, **SINGLE_NODE, **patience, **self.overrides}

    def __enter__(self) -> KafkaProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if not self.keeps_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Formats the directory at its first start, starts the broker and waits until it knows itself."""
        assert self.process is None, "the broker is already running"
        properties = self.properties()
        self.properties_path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        if "process.roles" in properties and not (self.log_dir / "meta.properties").exists():
            self._format()
        with self.output_path.open("ab") as output:
            self.process = subprocess.Popen(
                [*self._java(*self.jvm_flags), "kafka.Kafka", str(self.properties_path)],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,
            )
        try:
            wait_for_listener(
                self.host,
                self.port,
                self.start_timeout_s,
                alive=lambda: self.process.poll() is None,
            )
            wait_until(self._knows_itself, "it to know itself", self.start_timeout_s)
        except TimeoutError as error:
            self.kill()
            tail = self.output_path.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"Apache Kafka {self.version} did not start: {error}\n{tail}") from error

    def _knows_itself(self) -> bool:
        """Whether it names itself among the brokers: it listens when its controller has let it in, and hears
        of that a moment later.
        """
        if self.process is None or self.process.poll() is not None:
            raise TimeoutError("the process ended")
        try:
            with Wire(self.bootstrap_servers) as wire:
                brokers = wire.send(m.MetadataRequest(topics=[]), 12).brokers
        except OSError:
            return False
        return any(each.port == self.port for each in brokers)

    def stop(self) -> None:
        """Asks the broker to end (SIGTERM) and waits; kills it when it does not."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        """Ends the broker without a chance to clean up (SIGKILL)."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self._was_killed = True

    def _java(self, *flags: str) -> list[str]:
        return [str(java()), *flags, "-cp", f"{kafka_jars(self.version)}/*"]

    def _format(self) -> None:
        cluster_id = base64.urlsafe_b64encode(b"\x01" + os.urandom(15)).decode().rstrip("=")
        command = [
            *self._java(*JVM_FLAGS, *classes(self.version).reading_flags()),
            "kafka.tools.StorageTool",
            "format",
            "-t",
            cluster_id,
        ]
        command += ["-c", str(self.properties_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"Apache Kafka's storage tool failed:\n{done.stdout}{done.stderr}")


def classes(version: str) -> ClassArchive:
    """Its classes, archived once per user."""
    return ClassArchive(cache_root() / "classes", kafka_jars(version).name)


def make_class_archive(version: str) -> None:
    """Starts and stops a broker that leaves its classes for later ones, unless one has."""

    def live(flags: tuple[str, ...]) -> bool:
        with KafkaProcess(version, jvm_flags=(*JVM_FLAGS, *flags)) as kafka:
            process, kafka.stop_timeout_s = kafka.process, ARCHIVE_TIMEOUT_S
        return process is not None and process.returncode == 128 + signal.SIGTERM

    classes(version).make(live)


def run_tool(
    name: str,
    *arguments: str,
    stdin: bytes | str | None = None,
    timeout_s: float = TOOL_TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Runs one of Apache Kafka 4.4.0's tools by the name of its class below org.apache.kafka.tools.

    For instance `run_tool("consumer.ConsoleConsumer", "--topic", "t", ...)`. Output is decoded as UTF-8;
    the exit code is the caller's to look at. What SLF4J says of a missing logging binding is left out. Tools
    share one Java process; one that runs beside another (from a thread) gets a process of its own.
    """
    text = stdin.decode() if isinstance(stdin, bytes) else stdin or ""
    with free_tool_server() as server:
        if server is not None:
            return server.run(name, arguments, text, timeout_s)
    command = [str(java()), *JVM_FLAGS, "-cp", f"{kafka_tools_jars()}/*", f"org.apache.kafka.tools.{name}"]
    done = subprocess.run(
        [*command, *arguments],
        input=text,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        check=False,
    )
    done.stderr = "".join(
        line for line in done.stderr.splitlines(keepends=True) if not line.startswith("SLF4J: ")
    )
    return done
