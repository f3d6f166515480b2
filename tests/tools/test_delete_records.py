"""`ottla delete-records` beside Kafka's DeleteRecordsCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import assert_same, assert_same_lines, kafka_tool, ottla_tool
from tests.support.wire_client import WireClient

TOPIC = "delete-records"
Broker = OttlaProcess | KafkaProcess


@pytest.fixture
def at(either_broker: Broker) -> tuple[str, str]:
    """--bootstrap-server of a broker whose topic has ten records in partition 0, and none in 1."""
    with WireClient(either_broker.bootstrap_servers) as wire:
        if wire.metadata(TOPIC, allow_auto_topic_creation=False).topics[0].error_code:
            wire.create_topic(TOPIC, 2)
            wire.produce_values(TOPIC, *[b"%d" % number for number in range(10)], partition=0)
    return "--bootstrap-server", either_broker.bootstrap_servers


def written(folder: Path, content: object) -> tuple[str, str]:
    path = folder / "offsets.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return "--offset-json-file", str(path)


def rows(*partitions: tuple[str, int, int]) -> dict[str, object]:
    return {
        "version": 1,
        "partitions": [{"topic": t, "partition": p, "offset": offset} for t, p, offset in partitions],
    }


def test_first_offsets_move_forward(at: tuple[str, str], tmp_path: Path) -> None:
    for offset in (3, 5):
        same = written(tmp_path, rows((TOPIC, 0, offset), (TOPIC, 1, -1)))
        printed = assert_same_lines("delete-records", *at, *same)
        assert sorted(printed.splitlines()) == [
            "Executing records delete operation",
            "Records delete operation completed:",
            f"partition: {TOPIC}-0\tlow_watermark: {offset}",
            f"partition: {TOPIC}-1\tlow_watermark: 0",
        ]


def test_an_offset_that_is_not_there_is_told_and_ends_with_0(at: tuple[str, str], tmp_path: Path) -> None:
    printed = assert_same("delete-records", *at, *written(tmp_path, rows((TOPIC, 0, 11))))
    assert printed.splitlines()[2] == (
        f"partition: {TOPIC}-0\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: "
        "The requested offset is not within the range of offsets maintained by the server."
    )


def test_a_partition_that_is_not_there_is_told_at_once(at: tuple[str, str], tmp_path: Path) -> None:
    """Kafka's tool tries for a minute and prints its time-out."""
    ours = ottla_tool("delete-records", *at, *written(tmp_path, rows(("absent", 0, 1), (TOPIC, 7, 1))))
    assert ours.returncode == 0
    unknown = "error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: "
    assert ours.stdout.splitlines()[2:] == [
        f"partition: absent-0\t{unknown}This server does not host this topic-partition.",
        f"partition: {TOPIC}-7\t{unknown}This server does not host this topic-partition.",
    ]


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        ("{not json", "The input string is not a valid JSON"),
        ({"version": 2, "partitions": []}, "Not supported version field value 2"),
        ({"version": 1}, "Missing partitions field"),
        (rows(("t", 0, 5), ("t", 0, 6)), "Offset json file contains duplicate topic partitions: t-0"),
        ({"partitions": [{"topic": "t", "partition": "x", "offset": 5}]}, "Expected `Integer` value"),
        ({"partitions": [{"topic": "t", "partition": 0, "offset": "x"}]}, "Expected `Long` value"),
        ({"partitions": [{"topic": 5, "partition": 0, "offset": 5}]}, "Expected `String` value, received 5"),
        ({"partitions": [{"topic": "t", "offset": 5}]}, "No such field exists: `partition`"),
        ({"partitions": {}}, "Expected JSON array, received {}"),
        ({"partitions": [7]}, "Expected JSON object, received 7"),
        ([], "Expected JSON object, received []"),
    ],
    ids=str,
)
def test_files_that_are_refused(
    ottla_process: OttlaProcess, tmp_path: Path, content: object, refused: str
) -> None:
    arguments = "--bootstrap-server", ottla_process.bootstrap_servers, *written(tmp_path, content)
    ours, theirs = ottla_tool("delete-records", *arguments), kafka_tool("delete-records", *arguments)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout) == (1, "")
    assert refused in ours.stderr
    assert ours.stderr.strip() in theirs.stderr


def test_a_file_that_is_not_there(ottla_process: OttlaProcess) -> None:
    arguments = "--bootstrap-server", ottla_process.bootstrap_servers, "--offset-json-file", "absent.json"
    ours, theirs = ottla_tool("delete-records", *arguments), kafka_tool("delete-records", *arguments)
    assert (ours.returncode, ours.stderr) == (theirs.returncode, "Unable to read file absent.json\n")
    assert ours.stderr.strip() in theirs.stderr
