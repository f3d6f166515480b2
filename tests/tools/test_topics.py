"""`ottla topics` beside Kafka's TopicCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import pytest

from tests.support.tools import assert_same, kafka_tool, ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient


@pytest.fixture(scope="module")
def prepared() -> dict[str, bool]:
    """Which brokers have the topics of this module already."""
    return {}


@pytest.fixture
def at(either_broker, prepared) -> tuple[str, str]:
    """--bootstrap-server of a broker that has three topics, which Kafka's tool created."""
    option = ("--bootstrap-server", either_broker.bootstrap_servers)
    if option[1] not in prepared:
        prepared[option[1]] = True
        for arguments in (
            ("tools-a", "--partitions", "3"),
            ("tools-b", "--config", "retention.ms=1000", "--config", "cleanup.policy=compact"),
            ("tools-c", "--replica-assignment", "1,1"),
        ):
            assert kafka_tool("topics", *option, "--create", "--topic", *arguments).returncode == 0
    return option


@pytest.mark.parametrize(
    "arguments",
    [
        ("--list", "--topic", "tools-.*"),
        ("--describe", "--topic", "tools-a"),
        ("--describe", "--topic", "tools-b"),
        ("--describe", "--topic", "tools-c", "--topics-with-overrides"),
        ("--describe", "--topic", "tools-a", "--under-replicated-partitions"),
        ("--describe", "--topic", "tools-a", "--at-min-isr-partitions"),
        ("--describe", "--topic", "tools-missing"),
        ("--describe", "--topic", "tools-missing", "--if-exists"),
        ("--delete", "--topic", "tools-missing"),
        ("--alter", "--topic", "tools-missing", "--partitions", "3"),
        ("--create", "--topic", "tools-a"),
        ("--create", "--topic", "tools-a", "--if-not-exists"),
        ("--create", "--topic", "tools/bad"),
        ("--create", "--topic", "tools-new", "--partitions", "0"),
        ("--create", "--topic", "tools-new", "--replication-factor", "5"),
        ("--create", "--topic", "tools-new", "--config", "nope=1"),
        ("--create", "--topic", "tools-new", "--config", "retention.ms=abc"),
        ("--create", "--topic", "tools_new", "--replica-assignment", "9"),
        ("--alter", "--topic", "tools-a", "--partitions", "3"),
        ("--alter", "--topic", "tools-a", "--partitions", "2"),
    ],
    ids=" ".join,
)
def test_prints_what_kafkas_tool_prints(at, arguments) -> None:
    assert_same("topics", *at, *arguments)


def test_a_topic_lives_through_all_actions_as_with_kafkas_tool(at) -> None:
    steps = (  # and how many partitions there are then
        (("--create", "--topic", "{0}", "--partitions", "2", "--config", "segment.bytes=2000000"), 2),
        (("--alter", "--topic", "{0}", "--partitions", "4"), 4),
        (("--list", "--topic", "{0}"), 4),
        (("--delete", "--topic", "{0}"), 0),
        (("--list", "--topic", "{0}"), 0),
    )
    printed = {}
    for tool, name in ((ottla_tool, "tools-life-a"), (kafka_tool, "tools-life-b")):
        printed[tool] = []
        for step, count in steps:
            done = tool("topics", *at, *(part.format(name) for part in step))
            printed[tool].append((done.stdout.replace(name, "NAME"), done.returncode))
            await_partitions(at[1], name, count)
    assert printed[ottla_tool] == printed[kafka_tool]
    assert printed[ottla_tool][2] == ("NAME\n", 0)
    assert printed[ottla_tool][4] == ("\n", 0)


def await_partitions(address: str, topic: str, count: int) -> None:
    """Until the broker tells of so many: Apache Kafka's hears of a change a moment after it was answered."""
    with WireClient(address) as wire:

        def told() -> int:
            [found] = wire.metadata(topic, allow_auto_topic_creation=False).topics
            return len(found.partitions)

        wait_until(lambda: told() == count, f"{topic} to have {count} partitions")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "Command must include exactly one action: --list, --describe, --create, --alter or --delete"),
        (("--create", "--list"), "Command must include exactly one action: --list, --describe, --create"),
        (("--create",), 'Missing required argument "[topic]"'),
        (
            ("--create", "--topic", "q", "--under-replicated-partitions"),
            'Option "[under-replicated-partitions]" can\'t be used with option "[create]"',
        ),
    ],
)
def test_refuses_what_kafkas_tool_refuses_in_its_words(arguments, complaint) -> None:
    ours, theirs = (
        tool("topics", "--bootstrap-server", "x:1", *arguments) for tool in (ottla_tool, kafka_tool)
    )
    assert ours.stderr.startswith(complaint)
    assert theirs.stderr.startswith(complaint)
    assert (ours.returncode, theirs.returncode) == (1, 1)
