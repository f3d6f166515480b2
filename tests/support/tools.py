"""Runs a command line tool of ours and Apache Kafka's of the same name, to compare what they print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.kafka_process import run_tool

CHECKOUT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0

KAFKA_CLASSES = {
    "topics": "TopicCommand",
    "configs": "ConfigCommand",
    "get-offsets": "GetOffsetShell",
    "dump-log": "DumpLogSegments",
    "console-producer": "ConsoleProducer",
    "console-consumer": "consumer.ConsoleConsumer",
    "consumer-groups": "consumer.group.ConsumerGroupCommand",
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
