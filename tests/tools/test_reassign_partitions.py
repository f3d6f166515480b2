"""`ottla reassign-partitions` beside Kafka's ReassignPartitionsCommand, on Apache Kafka.

With one broker there is nowhere to go, but everything is asked, checked, throttled and told.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.kafka_process import KafkaProcess
from tests.support.tools import assert_same, kafka_tool, ottla_tool
from tests.support.wire_client import WireClient

NAME = "reassign-partitions"
TOPIC = "reassigned"


@pytest.fixture
def at(apache_kafka: KafkaProcess) -> tuple[str, str]:
    """--bootstrap-server of a broker with a topic of two partitions."""
    with WireClient(apache_kafka.bootstrap_servers) as wire:
        if wire.metadata(TOPIC, allow_auto_topic_creation=False).topics[0].error_code:
            wire.create_topic(TOPIC, 2)
    return "--bootstrap-server", apache_kafka.bootstrap_servers


@pytest.fixture
def node(apache_kafka: KafkaProcess) -> int:
    with WireClient(apache_kafka.bootstrap_servers) as wire:
        (broker,) = wire.metadata(TOPIC).brokers
        return int(broker.node_id)


def written(folder: Path, content: object) -> str:
    path = folder / "file.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def rows(*partitions: tuple[str, int, list[int]]) -> dict[str, object]:
    return {
        "version": 1,
        "partitions": [{"topic": t, "partition": p, "replicas": replicas} for t, p, replicas in partitions],
    }


def assert_refused_alike(*arguments: str) -> str:
    """The same first lines on standard output as far as ours has some, and exit code 1."""
    ours, theirs = (run(NAME, *arguments) for run in (ottla_tool, kafka_tool))
    assert (ours.returncode, theirs.returncode) == (1, 1), ours.stderr + theirs.stderr
    lines = ours.stdout.splitlines()
    assert lines == theirs.stdout.splitlines()[: len(lines)]
    return ours.stdout


def test_nothing_moves(at: tuple[str, str]) -> None:
    assert assert_same(NAME, *at, "--list") == "No partition reassignments found.\n"


def test_a_plan_for_topics(at: tuple[str, str], node: int, tmp_path: Path) -> None:
    path = written(tmp_path, {"version": 1, "topics": [{"topic": TOPIC}]})
    printed = assert_same(
        NAME, *at, "--generate", "--topics-to-move-json-file", path, "--broker-list", str(node)
    )
    lines = printed.splitlines()
    assert [lines[0], lines[2], lines[3]] == [
        "Current partition replica assignment",
        "",
        "Proposed partition reassignment configuration",
    ]
    assert [row["replicas"] for row in json.loads(lines[4])["partitions"]] == [[node], [node]]


def test_a_move_is_begun_looked_at_and_has_no_throttle_left(
    at: tuple[str, str], node: int, tmp_path: Path
) -> None:
    path = written(tmp_path, rows((TOPIC, 0, [node]), (TOPIC, 1, [node])))
    same = (NAME, *at, "--reassignment-json-file", path)
    printed = assert_same(*same, "--execute", "--throttle", "1000")
    assert printed.splitlines()[-2:] == [
        "The inter-broker throttle limit was set to 1000 B/s",
        f"Successfully started partition reassignments for {TOPIC}-0,{TOPIC}-1",
    ]
    assert "Clearing topic-level throttles on topic reassigned" in assert_same(*same, "--verify")
    assert "Clearing" not in assert_same(*same, "--verify", "--preserve-throttles")


def test_what_is_elsewhere_or_nowhere_is_told(at: tuple[str, str], node: int, tmp_path: Path) -> None:
    path = written(tmp_path, rows((TOPIC, 0, [node + 1]), ("nobody", 0, [node])))
    printed = assert_same(NAME, *at, "--verify", "--reassignment-json-file", path, "--preserve-throttles")
    assert f"but replica set is {node} rather than {node + 1}." in printed


@pytest.mark.parametrize("options", [(), ("--preserve-throttles",)])
def test_there_is_nothing_to_cancel(
    at: tuple[str, str], node: int, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = written(tmp_path, rows((TOPIC, 0, [node])))
    printed = assert_same(NAME, *at, "--cancel", "--reassignment-json-file", path, *options)
    assert printed.startswith("None of the specified partition reassignments are active.\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (rows((TOPIC, 0, [99])), "Unknown broker id 99"),
        (rows((TOPIC, 0, [])), "Partition replica list cannot be empty"),
        (rows(), "Partition reassignment list cannot be empty"),
        ({"version": 2, "partitions": []}, "Not supported version field value 2"),
        (
            rows((TOPIC, 0, [1, 1])),
            f"Partition replica lists may not contain duplicate entries: {TOPIC}-0 contains multiple entries "
            "for 1",
        ),
        (
            rows((TOPIC, 0, [1]), (TOPIC, 0, [1])),
            f"Partition reassignment contains duplicate topic partitions: {TOPIC}-0",
        ),
    ],
)
def test_files_that_cannot_be_executed(
    at: tuple[str, str], tmp_path: Path, content: object, message: str
) -> None:
    path = written(tmp_path, content)
    printed = assert_refused_alike(*at, "--execute", "--reassignment-json-file", path)
    assert printed == f"Error: {message}\n"


def test_partitions_and_topics_that_are_not_there(at: tuple[str, str], node: int, tmp_path: Path) -> None:
    unknown = "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
    for key, message in (
        ((TOPIC, 9), f"Unable to find partition: {TOPIC}-9"),
        (("nobody", 0), "Topic nobody not found."),
    ):
        path = written(tmp_path, rows((*key, [node])))
        printed = assert_refused_alike(*at, "--execute", "--reassignment-json-file", path)
        assert printed == f"{unknown}{message}\n"


def test_what_is_printed_for_the_way_back_can_be_executed_and_verified(
    at: tuple[str, str], node: int, tmp_path: Path
) -> None:
    path = written(tmp_path, rows((TOPIC, 0, [node])))
    printed = assert_same(NAME, *at, "--execute", "--reassignment-json-file", path)
    back = written(tmp_path, printed.splitlines()[2])
    again = assert_same(NAME, *at, "--execute", "--reassignment-json-file", back)
    assert "Successfully started moving log directory to /" in again
    assert "completed successfully." in assert_same(NAME, *at, "--verify", "--reassignment-json-file", back)


@pytest.mark.parametrize(
    ("topics", "brokers", "message"),
    [
        ([TOPIC], "1,1", "Broker list contains duplicate entries: [1]"),
        ([TOPIC, TOPIC], "1", f"List of topics to reassign contains duplicate entries: [{TOPIC}]"),
        ([TOPIC], "x", 'For input string: "x"'),
    ],
)
def test_plans_that_cannot_be_made(
    at: tuple[str, str], tmp_path: Path, topics: list[str], brokers: str, message: str
) -> None:
    path = written(tmp_path, {"topics": [{"topic": topic} for topic in topics]})
    asked = ("--generate", "--topics-to-move-json-file", path, "--broker-list", brokers)
    assert assert_refused_alike(*at, *asked) == f"Error: {message}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"),
        (("--list", "--verify"), "Command must include exactly one action"),
        (("--execute",), 'Missing required argument "[reassignment-json-file]"'),
        (("--list", "--throttle", "1"), 'Option "[throttle]" can\'t be used with action "[list]"'),
    ],
)
def test_options_that_do_not_go_together(
    at: tuple[str, str], arguments: tuple[str, ...], message: str
) -> None:
    ours, theirs = (run(NAME, *at, *arguments) for run in (ottla_tool, kafka_tool))
    assert (ours.returncode, theirs.returncode) == (1, 1)
    assert message in ours.stderr
    assert message in theirs.stderr
