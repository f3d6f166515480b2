"""`ottla share-groups` beside Kafka's ShareGroupCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.group_member import await_coordinator
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.share_group_member import ShareGroupMember
from tests.support.tools import assert_same_lines, kafka_tool, ottla_tool
from tests.support.wire_client import WireClient

IDLE, OTHER, LIVE = "sg-idle", "sg-other with a long name", "sg-live"
TOOL = "share-groups"


@pytest.fixture(scope="module")
def prepared() -> Iterator[dict[str, ShareGroupMember]]:
    """By broker: a member that keeps group LIVE alive."""
    members: dict[str, ShareGroupMember] = {}
    with ExitStack() as stack:
        yield members
        for member in members.values():
            stack.enter_context(member).leave()


@pytest.fixture
def at(either_broker: OttlaProcess | KafkaProcess, prepared: dict[str, ShareGroupMember]) -> tuple[str, str]:
    """--bootstrap-server of a broker with two topics, two idle share groups and a live one."""
    servers = either_broker.bootstrap_servers
    option = ("--bootstrap-server", servers)
    if servers in prepared:
        prepared[servers].beat()
        return option
    with WireClient(servers) as wire:
        topic_id = wire.create_topic("sg-a", 3)
        other_id = wire.create_topic("sg-b")
        wire.create_topic("sg-unread", 2)
        wire.produce_values("sg-a", *[b"x"] * 5, timestamp=1_700_000_000_000)
        wire.produce_values("sg-a", *[b"x"] * 2, partition=1)
        await_coordinator(wire, LIVE)
    for group, topics in ((IDLE, ("sg-a", "sg-b")), (OTHER, ("sg-a:1",))):
        scope = [part for topic in topics for part in ("--topic", topic)]
        done = kafka_tool(
            TOOL, *option, "--group", group, "--reset-offsets", "--to-offset", "1", "--execute", *scope
        )
        assert "Error" not in done.stdout, done.stdout
    member = prepared[servers] = ShareGroupMember(servers, LIVE, "ann", ["sg-a", "sg-b"])
    member.join()
    member.settle({topic_id: [0, 1, 2], other_id: [0]})
    return option


@pytest.mark.parametrize(
    "arguments",
    [
        ("--list",),
        ("--list", "--state"),
        ("--list", "--state", "stable"),
        ("--list", "--state", "Dead, EMPTY"),
        ("--describe", "--group", IDLE, "--group", OTHER),
        ("--describe", "--group", IDLE, "--offsets", "--verbose"),
        ("--describe", "--group", LIVE),
        ("--describe", "--group", LIVE, "--verbose"),
        ("--describe", "--group", LIVE, "--members"),
        ("--describe", "--group", LIVE, "--members", "--verbose"),
        ("--describe", "--group", IDLE, "--members"),
        ("--describe", "--all-groups"),
        ("--describe", "--all-groups", "--members"),
        ("--describe", "--all-groups", "--state"),
        ("--describe", "--group", LIVE, "--state", "--verbose"),
        ("--describe", "--group", "sg-missing"),
        ("--describe", "--group", "sg-missing", "--members"),
        ("--describe", "--group", "sg-missing", "--state"),
        ("--delete", "--group", "sg-missing"),
        ("--delete", "--group", LIVE),
        ("--delete-offsets", "--group", "sg-missing", "--topic", "sg-a"),
        ("--delete-offsets", "--group", LIVE, "--topic", "sg-a", "--topic", "sg-b"),
        ("--delete-offsets", "--group", IDLE, "--topic", "sg-nowhere", "--topic", "sg-unread"),
        ("--delete-offsets", "--group", IDLE, "--group", OTHER, "--topic", "sg-nowhere"),
    ],
    ids=" ".join,
)
def test_prints_what_kafkas_tool_prints(at: tuple[str, str], arguments: tuple[str, ...]) -> None:
    assert_same_lines(TOOL, *at, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--to-earliest", "--all-topics"),
        ("--to-latest", "--all-topics"),
        ("--to-current", "--topic", "sg-a", "--topic", "sg-unread:1"),
        ("--to-offset", "2", "--topic", "sg-a"),
        ("--to-offset", "99", "--topic", "sg-a:0,2"),
        ("--to-offset", "-3", "--topic", "sg-a:0,2"),
        ("--to-offset", "abc", "--topic", "sg-a"),
        ("--to-datetime", "2020-01-01T00:00:00.000", "--topic", "sg-a"),
        ("--to-datetime", "2060-01-01T00:00:00.000+02:00", "--topic", "sg-a"),
        ("--to-datetime", "2020-01-01", "--topic", "sg-a"),
        ("--to-earliest", "--topic", "sg-nowhere"),
        ("--to-earliest", "--topic", "sg-a:5,6"),
        ("--to-earliest", "--topic", "sg-a:x"),
        ("--from-file", "/nowhere"),
        ("--to-earliest", "--all-topics", "--export"),
        ("--to-earliest", "--all-topics", "--group", OTHER),
    ],
    ids=" ".join,
)
def test_resets_as_kafkas_tool_does(at: tuple[str, str], arguments: tuple[str, ...]) -> None:
    assert_same_lines(TOOL, *at, "--reset-offsets", "--dry-run", "--group", IDLE, *arguments)


@pytest.mark.parametrize(("group", "code"), [(LIVE, 1), ("sg-missing", 0)])
def test_resets_of_groups_in_use_and_of_none(at: tuple[str, str], group: str, code: int) -> None:
    reset = (TOOL, *at, "--reset-offsets", "--dry-run", "--group", group, "--to-latest", "--all-topics")
    assert_same_lines(*reset)
    assert ottla_tool(*reset).returncode == code


@pytest.mark.parametrize("group", [IDLE, LIVE])
def test_says_on_standard_error_what_kafkas_tool_says_there(at: tuple[str, str], group: str) -> None:
    for arguments in ((), ("--members",), ("--state",)):
        ours, theirs = (
            tool(TOOL, *at, "--describe", "--group", group, *arguments) for tool in (ottla_tool, kafka_tool)
        )
        assert ours.stderr == theirs.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--describe",),
        ("--describe", "--group", "g", "--members", "--offsets"),
        ("--describe", "--group", "g", "--state", "Empty"),
        ("--describe", "--group", "g", "--all-groups"),
        ("--describe", "--group", "g", "--topic", "t"),
        ("--delete",),
        ("--delete", "--group", "g", "--all-groups"),
        ("--delete", "--group", "g", "--topic", "t"),
        ("--delete", "--group", "g", "--state"),
        ("--delete-offsets", "--group", "g"),
        ("--list", "--group", "g"),
        ("--list", "--describe", "--group", "g"),
        ("--list", "--members"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--execute"),
        ("--reset-offsets", "--group", "g", "--topic", "t"),
        ("--reset-offsets", "--dry-run", "--topic", "t"),
        ("--reset-offsets", "--group", "g", "--dry-run"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--topic", "t"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--topic", "t", "--all-topics"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--topic", "t", "--from-file", "x"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--topic", "t", "--to-latest", "--to-earliest"),
        ("--reset-offsets", "--group", "g", "--dry-run", "--topic", "t", "--to-current", "--to-offset", "1"),
    ],
    ids=" ".join,
)
def test_refuses_what_kafkas_tool_refuses_in_its_words(arguments: tuple[str, ...]) -> None:
    nowhere = ("--bootstrap-server", "127.0.0.1:1")
    ours, theirs = ottla_tool(TOOL, *nowhere, *arguments), kafka_tool(TOOL, *nowhere, *arguments)
    assert (ours.returncode, theirs.returncode) == (1, 1)
    said = theirs.stderr.splitlines()[0].removeprefix(
        'Exception in thread "main" joptsimple.UnavailableOptionException: '
    )
    assert said in ours.stderr


def test_states_that_share_groups_do_not_have(at: tuple[str, str]) -> None:
    for tool in (ottla_tool, kafka_tool):
        done = tool(TOOL, *at, "--list", "--state", "stable,assigning")
        assert done.returncode == 1
        assert done.stderr.startswith("Invalid state list 'stable,assigning'. Valid states are: ")


def test_a_group_lives_through_all_actions_as_with_kafkas_tool(at: tuple[str, str], tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("sg-a,0,2\nsg-a,1,99\n")
    reset = ("--reset-offsets", "--group", "{0}")
    steps = (
        (*reset, "--to-offset", "3", "--topic", "sg-a", "--topic", "sg-b", "--execute"),
        ("--describe", "--group", "{0}"),
        (*reset, "--from-file", str(plan), "--execute", "--export"),
        ("--describe", "--group", "{0}", "--verbose"),
        (*reset, "--to-current", "--all-topics", "--dry-run"),
        ("--delete-offsets", "--group", "{0}", "--topic", "sg-a"),
        ("--describe", "--group", "{0}"),
        ("--delete-offsets", "--group", "{0}", "--topic", "sg-b"),
        ("--describe", "--group", "{0}"),
        ("--describe", "--group", "{0}", "--state"),
        ("--delete", "--group", "{0}", "--group", "sg-missing"),
        ("--delete", "--group", "{0}"),
        ("--list",),
    )
    printed = {}
    for tool, name in ((ottla_tool, "sg-life-a"), (kafka_tool, "sg-life-b")):
        printed[tool] = []
        for step in steps:
            done = tool(TOOL, *at, *(part.format(name) for part in step))
            lines = sorted(done.stdout.replace(name, "NAME").splitlines())
            if step == ("--list",):  # groups of other tests come and go
                lines = [line for line in lines if line == "NAME"]
            printed[tool].append((lines, done.returncode))
    assert printed[ottla_tool] == printed[kafka_tool]
