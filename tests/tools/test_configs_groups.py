"""`ottla configs` of groups beside Kafka's ConfigCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.tools import assert_same, assert_same_lines, kafka_tool, ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

GROUPS = ("--entity-type", "groups")
SESSION, BEGINNING = "consumer.session.timeout.ms=50000", "share.auto.offset.reset=earliest"


def commit(bootstrap_servers: str, group_id: str, topic: str) -> None:
    """Make a group that has an offset and no settings."""
    request = m.OffsetCommitRequest
    with WireClient(bootstrap_servers) as wire:
        wire.create_topic(topic)
        place = request.OffsetCommitRequestPartition(committed_offset=0)
        body = request(
            group_id=group_id, topics=[request.OffsetCommitRequestTopic(name=topic, partitions=[place])]
        )

        def committed() -> bool:
            wire.send(m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 4)
            return wire.send(body, 8).topics[0].partitions[0].error_code == 0

        wait_until(committed, "a committed offset")


@pytest.fixture(scope="module")
def prepared() -> set[str]:
    """The brokers that have the groups of this module already."""
    return set()


@pytest.fixture
def at(either_broker, prepared) -> tuple[str, str]:
    """--bootstrap-server of a broker with a group that has settings and another that has none."""
    option = ("--bootstrap-server", either_broker.bootstrap_servers)
    if option[1] not in prepared:
        prepared.add(option[1])
        commit(option[1], "configs-plain", "configs-groups")
        change = ("--alter", "--group", "configs-own", "--add-config", f"{SESSION},{BEGINNING}")
        assert ottla_tool("configs", *option, *change).returncode == 0
        described = ("configs", *option, "--describe", "--group", "configs-own")
        wait_until(lambda: SESSION in ottla_tool(*described).stdout, "a setting in force")
    return option


@pytest.mark.parametrize(
    "arguments",
    [
        ("--describe", "--group", "configs-own"),
        ("--describe", *GROUPS, "--entity-name", "configs-own", "--all"),
        ("--describe", "--group", "configs-plain"),
        ("--describe", "--group", "configs-missing"),
        ("--describe", "--group", "configs-missing", "--all"),
        ("--alter", "--group", "configs-own", "--add-config", SESSION),
        ("--alter", "--group", "configs-own", "--delete-config", "share.isolation.level"),
        ("--alter", "--group", "configs-own", "--delete-config", "no.such"),
    ],
    ids=" ".join,
)
def test_prints_what_kafkas_tool_prints(at, arguments) -> None:
    assert_same("configs", *at, *arguments)


def test_all_groups_are_those_with_offsets_or_settings(at) -> None:
    printed = assert_same_lines("configs", *at, "--describe", *GROUPS)
    for group in ("configs-own", "configs-plain"):
        assert f"Dynamic configs for group {group} are:\n" in printed
    assert f"\n  {SESSION} sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{SESSION}, " in printed


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        (
            "consumer.session.timeout.ms=1",
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        ("no.such=1", "Unknown group config name: no.such"),
        ("share.delivery.count.limit=x", "Invalid value x for configuration share.delivery.count.limit"),
    ],
)
def test_tells_what_the_broker_refuses(at, setting, reason) -> None:
    arguments = ("configs", *at, "--alter", "--group", "configs-refused", "--add-config", setting)
    ours, theirs = ottla_tool(*arguments), kafka_tool(*arguments)
    assert (ours.stdout, ours.returncode) == (theirs.stdout, theirs.returncode) == ("", 1)
    assert reason in ours.stderr
    assert reason in theirs.stderr


def test_a_groups_setting_is_changed_seen_and_reset_as_with_kafkas_tool(ottla_process) -> None:
    at = ("--bootstrap-server", ottla_process.bootstrap_servers)  # Apache Kafka shows changes late
    steps = (
        ("--alter", "--add-config", "consumer.heartbeat.interval.ms=7000"),
        ("--describe",),
        ("--alter", "--delete-config", "consumer.heartbeat.interval.ms"),
        ("--describe",),
    )
    printed = [
        [tool("configs", *at, "--group", "configs-changed", *step).stdout for step in steps]
        for tool in (ottla_tool, kafka_tool)
    ]
    assert printed[0] == printed[1]
    assert "consumer.heartbeat.interval.ms=7000 sensitive=false" in printed[0][1]
    assert printed[0][3] == "The group 'configs-changed' doesn't exist and doesn't have dynamic config.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--describe", *GROUPS, "--entity-default"),
        ("--alter", *GROUPS, "--entity-default", "--add-config", SESSION),
        ("--alter", *GROUPS, "--add-config", SESSION),
        ("--describe", "--entity-type", "topics", "--entity-default"),
        ("--describe", "--entity-type", "broker-loggers"),
    ],
    ids=" ".join,
)
def test_refuses_what_kafkas_tool_refuses_in_its_words(arguments) -> None:
    ours, theirs = (
        tool("configs", "--bootstrap-server", "x:1", *arguments) for tool in (ottla_tool, kafka_tool)
    )
    assert theirs.stderr.startswith(ours.stderr.strip())
    assert (ours.stdout, ours.returncode, theirs.returncode) == ("", 1, 1)
