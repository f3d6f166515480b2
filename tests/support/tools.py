"""Runs a command line tool of ours and Apache Kafka's of the same name, to compare what they print."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.forked_tools import CHECKOUT, free_tool_forker
from tests.support.kafka_process import run_tool

TIMEOUT_S = 120.0
LOOKS = 10
LOOKING = {"--describe", "--list", "--dry-run", "get-offsets"}  # calls with one of these change nothing
Done = subprocess.CompletedProcess[str]

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
    """Runs `ottla NAME ...` to its end, in a fork of a process that has imported it."""
    with free_tool_forker(name) as forker:
        if forker is not None:
            return forker.run((name, *arguments), stdin, TIMEOUT_S)
    return tool_process(name, *arguments, stdin=stdin)


def tool_process(name: str, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """The same as a user does it: starts Python, which imports the tool."""
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
    return assert_alike(lambda done: (done.stdout, done.returncode), name, *arguments)


def assert_same_lines(name: str, *arguments: str) -> str:
    """The same where Kafka's tool prints rows in the order of a hash table; returns what ours prints."""
    return assert_alike(lambda done: (sorted(done.stdout.splitlines()), done.returncode), name, *arguments)


def assert_alike(told: Callable[[Done], object], name: str, *arguments: str) -> str:
    """Both tools tell the same, by `told`; returns what ours prints.

    One looks after the other, and a broker may change in between: Apache Kafka hears late of what has been
    answered already, groups of other tests lose members. So where a look differs from theirs, ours looks
    again, and where that differs from its first look, the comparison begins anew.
    """
    ours, theirs = ottla_tool(name, *arguments), kafka_tool(name, *arguments)
    for _ in range(LOOKS if LOOKING & {name, *arguments} else 0):
        if told(ours) == told(theirs):
            break
        before, ours = ours, ottla_tool(name, *arguments)
        if told(ours) == told(before):
            break  # nothing has changed
        if told(ours) != told(theirs):
            theirs = kafka_tool(name, *arguments)
    assert told(ours) == told(theirs), ours.stderr + theirs.stderr
    return ours.stdout
