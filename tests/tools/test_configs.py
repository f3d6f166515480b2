"""`ottla configs` beside Kafka's ConfigCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import pytest

from tests.support.tools import assert_same, kafka_tool, ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient


@pytest.fixture(scope="module")
def prepared() -> dict[str, bool]:
    """Which brokers have the topic of this module already."""
    return {}


@pytest.fixture
def at(either_broker, prepared) -> tuple[str, str]:
    """--bootstrap-server of a broker that has a topic with settings of its own."""
    option = ("--bootstrap-server", either_broker.bootstrap_servers)
    if option[1] not in prepared:
        prepared[option[1]] = True
        with WireClient(option[1]) as wire:
            wire.create_topic("configs-a")
        change = (
            "--alter",
            "--topic",
            "configs-a",
            "--add-config",
            "retention.ms=5000,cleanup.policy=[compact,delete]",
        )
        assert ottla_tool("configs", *option, *change).returncode == 0
        described = ("configs", *option, "--describe", "--topic", "configs-a")
        wait_until(lambda: "retention.ms=5000" in ottla_tool(*described).stdout, "a setting in force")
    return option


@pytest.mark.parametrize(
    "arguments",
    [
        ("--describe", "--topic", "configs-a"),
        ("--describe", "--entity-type", "topics", "--entity-name", "configs-a", "--all"),
        ("--describe", "--topic", "configs-missing"),
        ("--describe", "--entity-type", "brokers", "--entity-name", "1"),
        ("--describe", "--broker", "1", "--all"),
        ("--describe", "--broker", "9"),
        ("--describe", "--broker-defaults"),
        ("--describe", "--entity-type", "brokers"),
        ("--alter", "--topic", "configs-a", "--delete-config", "flush.ms"),
        ("--alter", "--topic", "configs-a", "--add-config", "retention.ms"),
        ("--alter", "--topic", "configs-a", "--add-config", "nope=1"),
        ("--alter", "--topic", "configs-a", "--add-config", "retention.ms=abc"),
        ("--alter", "--topic", "configs-missing", "--add-config", "retention.ms=1"),
        ("--alter", "--broker", "1", "--add-config", "broker.id=3"),
    ],
    ids=" ".join,
)
def test_prints_what_kafkas_tool_prints(at, arguments) -> None:
    assert_same("configs", *at, *arguments)


@pytest.mark.parametrize("entity", [("--broker", "1"), ("--broker-defaults",)], ids=" ".join)
def test_a_brokers_setting_is_changed_seen_and_reset_as_with_kafkas_tool(ottla_process, entity) -> None:
    at = ("--bootstrap-server", ottla_process.bootstrap_servers)  # Apache Kafka shows changes late
    steps = (
        ("--alter", "--add-config", "log.cleaner.threads=2"),
        ("--describe",),
        ("--alter", "--delete-config", "log.cleaner.threads"),
        ("--describe",),
    )
    printed = [
        [tool("configs", *at, *entity, *step).stdout for step in steps] for tool in (ottla_tool, kafka_tool)
    ]
    assert printed[0] == printed[1]
    assert "log.cleaner.threads=2 sensitive=false" in printed[0][1]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--describe",),
        ("--alter", "--describe", "--topic", "a"),
        ("--alter", "--topic", "a"),
        ("--alter", "--entity-type", "topics", "--add-config", "retention.ms=1"),
        ("--describe", "--entity-type", "foo"),
    ],
    ids=" ".join,
)
def test_refuses_what_kafkas_tool_refuses_in_its_words(arguments) -> None:
    ours, theirs = (
        tool("configs", "--bootstrap-server", "x:1", *arguments) for tool in (ottla_tool, kafka_tool)
    )
    assert theirs.stderr.startswith(ours.stderr.strip())
    assert (ours.stdout, ours.returncode, theirs.returncode) == ("", 1, 1)
