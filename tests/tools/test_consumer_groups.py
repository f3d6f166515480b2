"""`ottla consumer-groups` beside Kafka's ConsumerGroupCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from protocol import messages as m
from tests.support.tools import assert_same_lines, kafka_tool, ottla_tool
from tests.support.transactions import await_markers
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

JOIN_TIMEOUT_S = 120.0
ALL = ("cg-one", "cg-two with a long name, and a comma")


@pytest.fixture(scope="module")
def prepared() -> dict[str, bool]:
    """Which brokers have the topics and groups of this module already."""
    return {}


@pytest.fixture
def at(either_broker, prepared) -> tuple[str, str]:
    """--bootstrap-server of a broker with two topics, and two groups that Kafka's tool made."""
    option = ("--bootstrap-server", either_broker.bootstrap_servers)
    if option[1] in prepared:
        return option
    prepared[option[1]] = True
    with WireClient(option[1]) as wire:
        for topic, partitions in (("cg-a", 3), ("cg-b", 1), ("cg-empty", 2)):
            wire.create_topic(topic, partitions)
    lines = "".join(f"key{number}\tvalue{number}\n" for number in range(40))
    for topic in ("cg-a", "cg-b"):
        sent = ottla_tool(
            "console-producer",
            *option,
            "--topic",
            topic,
            "--reader-property",
            "parse.key=true",
            stdin=lines,
        )
        assert sent.returncode == 0, sent.stderr
    for group, topics in zip(ALL, (("cg-a", "cg-b:0"), ("cg-a:1,2", "cg-empty")), strict=True):
        scope = [part for topic in topics for part in ("--topic", topic)]
        done = kafka_tool(
            "consumer-groups",
            *option,
            "--group",
            group,
            "--reset-offsets",
            "--to-offset",
            "5",
            "--execute",
            *scope,
        )
        assert "Error" not in done.stdout, done.stdout
    return option


def both_groups() -> list[str]:
    return [part for group in ALL for part in ("--group", group)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--list",),
        ("--list", "--state"),
        ("--list", "--type"),
        ("--list", "--state", "--type"),
        ("--list", "--state", "Stable,preparingRebalance"),
        ("--list", "--state", "Empty", "--type", "classic"),
        ("--list", "--type", "consumer"),
        ("--list", "--state", "nope"),
        ("--list", "--type", "share"),
        ("--describe", *both_groups()),
        ("--describe", *both_groups(), "--offsets", "--verbose"),
        ("--describe", "--all-groups"),
        ("--describe", *both_groups(), "--members"),
        ("--describe", "--group", ALL[0], "--members", "--verbose"),
        ("--describe", *both_groups(), "--state"),
        ("--describe", "--group", ALL[0], "--state", "--verbose"),
        ("--describe", "--group", "cg-missing"),
        ("--describe", "--group", "cg-missing", "--state"),
        ("--describe", "--group", "cg-missing", "--members"),
        ("--delete", "--group", "cg-missing"),
        ("--delete-offsets", "--group", "cg-missing", "--topic", "cg-b"),
        ("--delete-offsets", "--group", ALL[0], "--topic", "cg-nowhere"),
        ("--delete-offsets", "--group", ALL[0], "--topic", "cg-a:17"),
        ("--delete-offsets", "--group", ALL[0], "--topic", "cg-a:x"),
    ],
    ids=" ".join,
)
def test_prints_what_kafkas_tool_prints(at, arguments) -> None:
    assert_same_lines("consumer-groups", *at, *arguments)


def test_says_on_standard_error_what_kafkas_tool_says_there(at) -> None:
    for arguments in ((), ("--members",), ("--state",)):
        ours, theirs = (
            tool("consumer-groups", *at, "--describe", "--group", ALL[0], *arguments)
            for tool in (ottla_tool, kafka_tool)
        )
        assert ours.stderr == theirs.stderr == f"\nConsumer group '{ALL[0]}' has no active members.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to-earliest", "--all-topics"),
        ("--to-latest", "--all-topics"),
        ("--to-current", "--topic", "cg-a", "--topic", "cg-empty:1"),
        ("--to-offset", "7", "--topic", "cg-a"),
        ("--to-offset", "9999", "--topic", "cg-a:0,2"),
        ("--to-offset", "-3", "--topic", "cg-a:0,2"),
        ("--to-offset", "abc", "--topic", "cg-a"),
        ("--shift-by", "-2", "--topic", "cg-a"),
        ("--shift-by", "3", "--topic", "cg-a"),
        ("--shift-by", "3", "--topic", "cg-empty"),
        ("--to-datetime", "2020-01-01T00:00:00.000", "--topic", "cg-a"),
        ("--to-datetime", "2060-01-01T00:00:00.000+02:00", "--topic", "cg-a"),
        ("--to-datetime", "2020-01-01T00:00:00.000", "--topic", "cg-empty"),
        ("--to-datetime", "2020-01-01", "--topic", "cg-a"),
        ("--to-datetime", "2020-01-01T00:00:00", "--topic", "cg-a"),
        ("--to-datetime", "2020-13-01T00:00:00.000", "--topic", "cg-a"),
        ("--by-duration", "P1DT2H3M4.5S", "--topic", "cg-a"),
        ("--by-duration", "PT0S", "--topic", "cg-a"),
        ("--by-duration", "1 day", "--topic", "cg-a"),
        ("--to-earliest", "--topic", "cg-nowhere"),
        ("--to-earliest", "--topic", "cg-nowhere:0"),
        ("--to-earliest", "--topic", "cg-a:5,6"),
        ("--to-earliest", "--topic", "cg-a:x"),
        ("--to-earliest", "--topic", "cg-a:0:1"),
        ("--to-earliest",),
        ("--all-topics",),
        ("--from-file", "/nowhere"),
        ("--to-earliest", "--all-topics", "--export"),
    ],
    ids=" ".join,
)
def test_resets_as_kafkas_tool_does(at, arguments) -> None:
    assert_same_lines("consumer-groups", *at, "--reset-offsets", "--dry-run", "--group", ALL[0], *arguments)


@pytest.mark.parametrize("export", [(), ("--export",)], ids=str)
def test_resets_several_groups_as_kafkas_tool_does(at, export) -> None:
    assert_same_lines(
        "consumer-groups",
        *at,
        "--reset-offsets",
        "--dry-run",
        *both_groups(),
        "--to-latest",
        "--all-topics",
        *export,
    )


def test_what_one_tool_exports_the_other_reads(at, tmp_path) -> None:
    for index, (writer, groups) in enumerate(
        ((ottla_tool, both_groups()), (kafka_tool, both_groups()), (ottla_tool, ("--group", ALL[1])))
    ):
        reset = ("consumer-groups", *at, "--reset-offsets", "--dry-run", *groups)
        exported = writer(*reset, "--to-current", "--all-topics", "--export").stdout
        path = tmp_path / f"{index}.csv"
        path.write_text(exported.rstrip("\n") + "\n")
        assert_same_lines(*reset, "--from-file", str(path))
        assert_same_lines(
            "consumer-groups",
            *at,
            "--reset-offsets",
            "--dry-run",
            "--group",
            "cg-other",
            "--from-file",
            str(path),
        )


def test_a_group_lives_through_all_actions_as_with_kafkas_tool(at) -> None:
    steps = (
        ("--reset-offsets", "--group", "{0}", "--to-offset", "3", "--topic", "cg-a", "--execute"),
        ("--reset-offsets", "--group", "{0}", "--shift-by", "2", "--all-topics", "--execute", "--export"),
        ("--describe", "--group", "{0}"),
        ("--delete-offsets", "--group", "{0}", "--topic", "cg-a:1", "--topic", "cg-b"),
        ("--describe", "--group", "{0}"),
        ("--delete", "--group", "{0}", "--group", "cg-missing"),
        ("--list",),
    )
    printed = {}
    for tool, name in ((ottla_tool, "cg-life-a"), (kafka_tool, "cg-life-b")):
        printed[tool] = []
        for step in steps:
            done = tool("consumer-groups", *at, *(part.format(name) for part in step))
            lines = sorted(done.stdout.replace(name, "NAME").splitlines())
            if step == ("--list",):  # groups of other tests come and go
                lines = [line for line in lines if line == "NAME"]
            printed[tool].append((lines, done.returncode))
    assert printed[ottla_tool] == printed[kafka_tool]


@contextmanager
def members(address: str, group: str, count: int, **settings: object) -> Iterator[None]:
    """Consumers in a group, which have their partitions of `cg-a`."""
    consumers = [
        Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "client.id": f"client-{number}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **settings,
                **({"group.instance.id": f"static-{number}"} if "instances" in group else {}),
            }
        )
        for number in range(count)
    ]
    try:
        for consumer in consumers:
            consumer.subscribe(["cg-a"])

        def settled() -> bool:
            for consumer in consumers:
                consumer.poll(0.05)
            owned = [len(consumer.assignment()) for consumer in consumers]
            return sum(owned) == 3 and max(owned) - min(owned) <= 1

        with WireClient(address) as wire:

            def stable() -> bool:
                groups = wire.send(m.ListGroupsRequest(states_filter=["Stable"]), 5).groups
                return settled() and group in {each.group_id for each in groups}

            wait_until(stable, "the members to have their partitions, and the broker to know", JOIN_TIMEOUT_S)
        owned = consumers[0].assignment()
        offsets = [TopicPartition(each.topic, each.partition, 2) for each in owned]
        consumers[0].commit(offsets=offsets, asynchronous=False)
        yield
    finally:
        for consumer in consumers:
            consumer.close()


VIEWS = (
    ("--describe",),
    ("--describe", "--verbose"),
    ("--describe", "--members"),
    ("--describe", "--members", "--verbose"),
    ("--describe", "--state"),
    ("--describe", "--state", "--verbose"),
    ("--reset-offsets", "--dry-run", "--to-earliest", "--all-topics"),
    ("--delete",),
    ("--delete-offsets", "--topic", "cg-a"),
)


@pytest.mark.parametrize("kind", ["classic", "classic-instances", "consumer"])
def test_groups_with_members_are_shown_as_kafkas_tool_shows_them(at, kind) -> None:
    group = f"cg-live-{kind}"
    newer = {"group.protocol": "consumer"}
    settings = newer if kind == "consumer" else {"heartbeat.interval.ms": 300}
    with members(at[1], group, 2, **settings):
        for view in VIEWS:
            assert_same_lines("consumer-groups", *at, *view, "--group", group)
        described = ottla_tool("consumer-groups", *at, "--describe", "--group", group).stdout
        assert described.count(f"\n{group} ") == 3
        listed = assert_same_lines("consumer-groups", *at, "--list", "--state", "Stable", "--type")
        assert group in listed


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--list", "--describe", "--group", "g"),
        ("--list", "--group", "g"),
        ("--list", "--topic", "t"),
        ("--describe",),
        ("--describe", "--group", "g", "--all-groups"),
        ("--describe", "--group", "g", "--members", "--state"),
        ("--describe", "--group", "g", "--state", "Stable"),
        ("--delete",),
        ("--delete", "--group", "g", "--topic", "t"),
        ("--delete-offsets", "--group", "g"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--execute"),
        ("--reset-offsets", "--dry-run", "--to-earliest"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--to-earliest", "--to-latest"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--from-file", "f", "--shift-by", "1"),
        ("--reset-offsets", "--to-earliest"),
    ],
    ids=" ".join,
)
@pytest.mark.kafka
def test_refuses_what_kafkas_tool_refuses_in_its_words(arguments) -> None:
    ours, theirs = (
        tool("consumer-groups", "--bootstrap-server", "x:1", *arguments) for tool in (ottla_tool, kafka_tool)
    )
    complaint = theirs.stderr.partition("\nOption  ")[0]
    # the order of a set: compare the words
    assert sorted(re.split("[ ,\n]+", ours.stderr.strip())) == sorted(re.split("[ ,\n]+", complaint))
    assert (ours.returncode, theirs.returncode) == (1, 1)


@pytest.mark.kafka
@pytest.mark.parametrize("option", ["members", "verbose", "offsets", "state", "type"])
def test_views_need_describe_or_list(option) -> None:
    arguments = ("--bootstrap-server", "x:1", "--delete", "--group", "g", f"--{option}")
    ours, theirs = (tool("consumer-groups", *arguments) for tool in (ottla_tool, kafka_tool))
    assert ours.stderr.rstrip("\n") in theirs.stderr
    assert (ours.returncode, theirs.returncode) == (1, 1)


@pytest.mark.kafka
@pytest.mark.parametrize(
    "pattern",
    ["orders-.*", "a(", "[a", "a**", "(?P<n", "*a", "a{2000}", "[z-a]", "(?z)", "a)", "\\", "\\8", "(?=a)"],
)
def test_regular_expressions_are_judged_as_kafkas_tool_judges_them(pattern) -> None:
    assert_same_lines("consumer-groups", "--validate-regex", pattern)


def test_lag_counts_what_kafkas_tool_counts_over_transaction_markers(apache_kafka) -> None:
    option = ("--bootstrap-server", apache_kafka.bootstrap_servers)
    with WireClient(option[1]) as wire:
        wire.create_topic("cg-txn")
    producer = Producer({"bootstrap.servers": option[1], "transactional.id": "cg-txn"})
    producer.init_transactions()
    for commits in (True, False, True):
        producer.begin_transaction()
        producer.produce("cg-txn", b"x")
        producer.flush()
        producer.commit_transaction() if commits else producer.abort_transaction()
    # three records and three markers: the consumer that has read all stands behind the last marker
    await_markers(option[1], "cg-txn", 6)
    reset = ("--reset-offsets", "--group", "cg-txn", "--topic", "cg-txn", "--execute")
    for offset, lag in ((6, 0), (5, 1), (2, 4)):
        done = ottla_tool("consumer-groups", *option, *reset, "--to-offset", str(offset))
        assert done.returncode == 0, done.stderr
        printed = assert_same_lines("consumer-groups", *option, "--describe", "--group", "cg-txn")
        assert printed.splitlines()[2].split()[:6] == ["cg-txn", "cg-txn", "0", str(offset), "6", str(lag)]
