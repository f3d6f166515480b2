"""`ottla leader-election` beside Kafka's LeaderElectionCommand, on Apache Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.kafka_process import KafkaProcess
from tests.support.tools import assert_same_lines, kafka_tool, ottla_tool
from tests.support.wire_client import WireClient

TOPIC = "leader-election"


@pytest.fixture
def at(apache_kafka: KafkaProcess) -> tuple[str, str]:
    """--bootstrap-server of a broker that leads two partitions of a topic."""
    with WireClient(apache_kafka.bootstrap_servers) as wire:
        if wire.metadata(TOPIC, allow_auto_topic_creation=False).topics[0].error_code:
            wire.create_topic(TOPIC, 2)
    return "--bootstrap-server", apache_kafka.bootstrap_servers


def assert_fails_alike(*arguments: str) -> str:
    """The same standard output, the same first line of standard error, and exit code 1."""
    ours, theirs = (run("leader-election", *arguments) for run in (ottla_tool, kafka_tool))
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout) == (1, ours.stdout)
    assert ours.stderr.splitlines()[0] == theirs.stderr.splitlines()[0]
    return ours.stdout + ours.stderr


@pytest.mark.parametrize("kind", ["preferred", "unclean", "PREFERRED"])
def test_leaders_that_are_in_place(at: tuple[str, str], kind: str) -> None:
    one = ("--election-type", kind, "--topic", TOPIC, "--partition", "0")
    printed = assert_same_lines("leader-election", *at, *one)
    assert printed == f"Valid replica already elected for partitions {TOPIC}-0\n"
    assert assert_same_lines("leader-election", *at, "--election-type", kind, "--all-topic-partitions") == ""


def test_partitions_that_are_not_there(at: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "partitions.json"
    rows = [{"topic": TOPIC, "partition": 1}, {"topic": "nobody", "partition": 0}]
    path.write_text(json.dumps({"partitions": rows}))
    printed = assert_fails_alike(*at, "--election-type", "preferred", "--path-to-json-file", str(path))
    assert printed.splitlines() == [
        f"Valid replica already elected for partitions {TOPIC}-1",
        "Error completing leader election (PREFERRED) for partition: nobody-0: "
        "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such topic as nobody",
        "1 replica(s) could not be elected",
    ]
    one = ("--election-type", "unclean", "--topic", TOPIC, "--partition", "9")
    assert "No such partition as leader-election-9" in assert_fails_alike(*at, *one)


@pytest.mark.parametrize(
    "content",
    ["{", '{"x": 1}', json.dumps({"partitions": [{"topic": TOPIC, "partition": 1}] * 2}), None],
)
def test_files_that_say_nothing(at: tuple[str, str], tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "partitions.json"
    if content is not None:
        path.write_text(content)
    assert_fails_alike(*at, "--election-type", "preferred", "--path-to-json-file", str(path))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic", "t"),
        ("--election-type", "preferred"),
        ("--election-type", "preferred", "--topic", "t"),
        ("--election-type", "preferred", "--partition", "1", "--all-topic-partitions"),
        ("--election-type", "preferred", "--topic", "t", "--all-topic-partitions"),
        ("--election-type", "other", "--topic", "t", "--partition", "9"),
    ],
)
def test_options_that_do_not_go_together(at: tuple[str, str], arguments: tuple[str, ...]) -> None:
    assert_fails_alike(*at, *arguments)
