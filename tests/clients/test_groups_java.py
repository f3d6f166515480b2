"""Kafka's own console consumer and group tool on our broker, and its dump tool on what groups wrote there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.group_member import LIBRARIES, TOPIC
from tests.clients.group_members import Group, produce
from tests.support.kafka_process import run_tool
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.kafka

PARTITIONS = 2
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
GROUP_TOOL = "consumer.group.ConsumerGroupCommand"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OttlaProcess]:
    with OttlaProcess(SETTINGS, directory=tmp_path) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.create_topic(TOPIC, PARTITIONS)
        produce(broker, PARTITIONS, 0, 20)
        yield broker


def tool(broker: OttlaProcess, name: str, *arguments: str) -> str:
    done = run_tool(name, "--bootstrap-server", broker.bootstrap_servers, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stdout, done.stdout
    return done.stdout


def console(broker: OttlaProcess, count: int, *arguments: str) -> set[str]:
    """What the console consumer reads as a member of group "java"."""
    read = tool(
        broker, "consumer.ConsoleConsumer", "--topic", TOPIC, "--group", "java",
        "--max-messages", str(count), "--timeout-ms", "60000", *arguments,
    )  # fmt: skip
    return set(read.split())


def offsets(broker: OttlaProcess) -> dict[int, tuple[str, str, str]]:
    """Current offset, end offset and lag of each partition, as the tool describes group "java"."""
    rows = [line.split() for line in tool(broker, GROUP_TOOL, "--describe", "--group", "java").splitlines()]
    return {int(row[2]): (row[3], row[4], row[5]) for row in rows if row[:2] == ["java", TOPIC]}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_console_consumer_and_the_group_tool(broker: OttlaProcess, protocol: str) -> None:
    setting = ("--command-property", f"group.protocol={protocol}")
    everything = {str(number) for number in range(20)}
    assert console(broker, 20, "--from-beginning", *setting) == everything
    assert offsets(broker) == {0: ("10", "10", "0"), 1: ("10", "10", "0")}
    produce(broker, PARTITIONS, 20, 30)
    assert offsets(broker) == {0: ("10", "15", "5"), 1: ("10", "15", "5")}
    assert console(broker, 10, *setting) == {str(number) for number in range(20, 30)}

    assert "java" in tool(broker, GROUP_TOOL, "--list").split()
    assert re.search(
        r"^java .*\bEmpty\b", tool(broker, GROUP_TOOL, "--describe", "--group", "java", "--state"), re.M
    )
    reset = ("--group", "java", "--topic", TOPIC, "--reset-offsets", "--execute")
    tool(broker, GROUP_TOOL, *reset, "--to-offset", "4")
    assert offsets(broker) == {0: ("4", "15", "11"), 1: ("4", "15", "11")}
    assert len(console(broker, 22, *setting)) == 22
    tool(broker, GROUP_TOOL, "--delete-offsets", "--group", "java", "--topic", TOPIC)
    assert offsets(broker) == {}
    tool(broker, GROUP_TOOL, *reset, "--to-earliest")
    assert offsets(broker) == {0: ("0", "15", "15"), 1: ("0", "15", "15")}
    assert "successful" in tool(broker, GROUP_TOOL, "--delete", "--group", "java")
    assert "java" not in tool(broker, GROUP_TOOL, "--list").split()


def test_the_dump_tool_reads_what_groups_write(broker: OttlaProcess) -> None:
    """Classic groups of three libraries, one of the newer protocol, a reset and a deleted group."""
    for library in LIBRARIES:
        with Group(broker, library, PARTITIONS) as group:
            member = group.start(library)
            group.wait_for({str(number) for number in range(20)})
            wait_until(lambda g=group: g.committed() == [10, 10], "its commits")
            group.stop(member)
    console(broker, 20, "--from-beginning", "--command-property", "group.protocol=consumer")
    tool(
        broker,
        GROUP_TOOL,
        "--group",
        "aiokafka",
        "--topic",
        TOPIC,
        "--reset-offsets",
        "--to-earliest",
        "--execute",
    )
    tool(broker, GROUP_TOOL, "--delete", "--group", "kafka-python")
    broker.stop()

    files = sorted(broker.log_dir.glob("__consumer_offsets-*/*.log"))
    done = run_tool("DumpLogSegments", "--offsets-decoder", "--files", ",".join(map(str, files)))
    assert done.returncode == 0, done.stderr
    text = done.stdout
    assert "Error" not in text + done.stderr, text
    assert "isvalid: false" not in text
    for library in LIBRARIES:
        assert f'"type":"2","data":{{"group":"{library}"}}' in text, "the group's records"
        assert f'"group":"{library}","topic":"{TOPIC}","partition":0' in text, "its offsets"
    assert '"protocolType":"consumer"' in text
    kinds = {int(kind) for kind in re.findall(r'key: \{"type":"(\d+)"', text)}
    assert kinds >= {1, 2, 3, 5, 6, 7, 8}, "every record type of both protocols is understood"
    records = [line for line in text.splitlines() if line.startswith("| offset")]
    assert records
    assert all(" key: {" in line for line in records), "no key that the tool can't read"
