"""Runs a command line tool of ours and Apache Kafka's of the same name, to compare what they print."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.kafka_process import run_tool

CHECKOUT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120.0

KAFKA_CLASSES = {
    "topics": "TopicCommand",
    "configs": "ConfigCommand",
    "get-offsets": "GetOffsetShell",
    "dump-log": "DumpLogSegments",
    "features": "FeatureCommand",
    "transactions": "TransactionsCommand",
    "delete-records": "DeleteRecordsCommand",
    "log-dirs": "LogDirsCommand",
    "cluster": "ClusterTool",
    "leader-election": "LeaderElectionCommand",
    "reassign-partitions": "reassign.ReassignPartitionsCommand",
    "console-producer": "ConsoleProducer",
    "console-consumer": "consumer.ConsoleConsumer",
    "consumer-groups": "consumer.group.ConsumerGroupCommand",
    "share-groups": "consumer.group.ShareGroupCommand",
}


def ottla_tool(name: str, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs `ottla NAME ...` as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "ottla", name, *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=CHECKOUT,
        timeout=TIMEOUT_S,
        check=False,
    )


class BackgroundTool:
    """A tool of ours that runs while a test goes on."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path) -> None:
        self._process = process
        self._path = path

    def output(self) -> str:
        """What it has printed so far."""
        return self._path.read_text(encoding="utf-8")

    def lines(self) -> int:
        """How many lines it has printed so far."""
        return self.output().count("\n")

    def interrupt(self) -> None:
        """Ends it as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(TIMEOUT_S)


@contextlib.contextmanager
def background_tool(name: str, *arguments: str) -> Iterator[BackgroundTool]:
    """Runs `ottla NAME ...` beside the test; killed at the end when it still runs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output"
        with path.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "ottla", name, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                cwd=CHECKOUT,
            )
        tool = BackgroundTool(process, path)
        try:
            yield tool
        finally:
            process.kill()
            process.wait()


def kafka_tool(name: str, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs Kafka's tool under the name of ours."""
    return run_tool(KAFKA_CLASSES[name], *arguments, stdin=stdin)


def assert_same(name: str, *arguments: str) -> str:
    """Both tools print the same lines and end with the same code; returns what they print."""
    ours, theirs = ottla_tool(name, *arguments), kafka_tool(name, *arguments)
    assert (ours.stdout, ours.returncode) == (theirs.stdout, theirs.returncode), ours.stderr + theirs.stderr
    return ours.stdout


def assert_same_lines(name: str, *arguments: str) -> str:
    """The same where Kafka's tool prints rows in the order of a hash table; returns what ours prints."""
    ours, theirs = ottla_tool(name, *arguments), kafka_tool(name, *arguments)
    printed = [(sorted(each.stdout.splitlines()), each.returncode) for each in (ours, theirs)]
    assert printed[0] == printed[1], ours.stderr + theirs.stderr
    return ours.stdout
