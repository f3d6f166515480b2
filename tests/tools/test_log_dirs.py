"""`ottla log-dirs` beside Kafka's LogDirsCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import Done, assert_alike, assert_same, kafka_tool, ottla_tool
from tests.support.wire_client import WireClient

TOPIC, OTHER = "log-dirs", "log-dirs-other"
Broker = OttlaProcess | KafkaProcess


@pytest.fixture
def at(either_broker: Broker) -> tuple[str, ...]:
    with WireClient(either_broker.bootstrap_servers) as wire:
        if wire.metadata(TOPIC, allow_auto_topic_creation=False).topics[0].error_code:
            wire.create_topic(TOPIC, 2)
            wire.create_topic(OTHER, 1)
            wire.produce_values(TOPIC, b"x" * 1000, partition=1)
    return "--describe", "--bootstrap-server", either_broker.bootstrap_servers


def told(done: Done) -> object:
    return done.returncode, as_values(done.stdout)


def as_values(printed: str) -> tuple[list[str], Any]:
    """Lines for people and the JSON, whose lists of partitions come in the order of hash tables."""
    *lines, document = printed.splitlines()
    found = json.loads(document)
    for broker in found["brokers"]:
        for each in broker["logDirs"]:
            each["partitions"].sort(key=lambda row: row["partition"])
    return lines, found


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic-list", TOPIC),
        ("--topic-list", f"{TOPIC},{OTHER},absent"),
        ("--topic-list", "absent"),
        ("--topic-list", TOPIC, "--broker-list", "1"),
        ("--broker-list", "1", "--topic-list", OTHER),
    ],
    ids=" ".join,
)
def test_prints_what_kafkas_tool_prints(at: tuple[str, ...], arguments: tuple[str, ...]) -> None:
    printed = assert_alike(told, "log-dirs", *at, *arguments)
    assert list(json.loads(printed.splitlines()[-1])) == ["brokers", "version"]


def test_sizes_are_those_of_the_files(at: tuple[str, ...]) -> None:
    _, found = as_values(ottla_tool("log-dirs", *at, "--topic-list", TOPIC).stdout)
    [broker] = found["brokers"]
    [directory] = broker["logDirs"]
    assert directory["error"] is None
    sizes = {row["partition"]: row["size"] for row in directory["partitions"]}
    assert sizes[f"{TOPIC}-0"] == 0
    assert 1000 < sizes[f"{TOPIC}-1"] < 1100
    assert {(row["offsetLag"], row["isFuture"]) for row in directory["partitions"]} == {(0, False)}


def test_all_topics_without_a_list(at: tuple[str, ...]) -> None:
    _, found = as_values(assert_alike(told, "log-dirs", *at))
    names = {row["partition"] for row in found["brokers"][0]["logDirs"][0]["partitions"]}
    assert {f"{TOPIC}-0", f"{TOPIC}-1", f"{OTHER}-0"} <= names


def test_a_broker_that_is_not_there(at: tuple[str, ...]) -> None:
    printed = assert_same("log-dirs", *at, "--broker-list", "1,9")
    assert printed == ""
    ours = ottla_tool("log-dirs", *at, "--broker-list", "1,9")
    text = "ERROR: The given brokers do not exist from --broker-list: 9. Current existent brokers: 1\n"
    assert ours.stderr == text
    assert ours.stderr.strip() in kafka_tool("log-dirs", *at, "--broker-list", "1,9").stderr


def test_ids_that_are_no_numbers(ottla_process: OttlaProcess) -> None:
    at = "--describe", "--bootstrap-server", ottla_process.bootstrap_servers
    assert ottla_tool("log-dirs", *at, "--broker-list", "x").returncode == 1
    assert kafka_tool("log-dirs", *at, "--broker-list", "x").returncode == 1


def test_describe_is_asked_for(ottla_process: OttlaProcess) -> None:
    assert ottla_tool("log-dirs", "--bootstrap-server", ottla_process.bootstrap_servers).returncode == 1
