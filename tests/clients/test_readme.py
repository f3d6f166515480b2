"""The README's first steps do what they say, in their order, on one broker."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.machine import kcat
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import kafka_tool, ottla_tool
from tests.support.transactions import committed_values
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

ADDRESS = "127.0.0.1:9092"
TIMEOUT_S = 120
README = Path(__file__).resolve().parents[2] / "README.md"
STEPS = README.read_text(encoding="utf-8").partition("## First steps")[2].partition("\n## ")[0]
LIBRARIES = {
    "confluent-kafka": "from confluent_kafka",
    "kafka-python": "from kafka import",
    "aiokafka": "from aiokafka",
}


def examples(mark: str) -> dict[str, str]:
    """The first piece of Python of each library that has the mark in it."""
    blocks = [text for text in re.findall(r"```python\n(.*?)```", STEPS, re.DOTALL) if mark in text]
    return {
        library: next(text for text in blocks if imports in text) for library, imports in LIBRARIES.items()
    }


PYTHON = examples("")
IN_TRANSACTIONS = examples("send_offsets_to_transaction")
COMMANDS = re.findall(r"^    (\S.*)$", STEPS, re.MULTILINE)


@pytest.fixture(scope="module")
def broker() -> Iterator[OttlaProcess]:
    """A broker as `ottla serve` starts it, with the topic that the first command makes."""
    with OttlaProcess() as process:
        for command in commands("ottla topics", process):
            assert ottla_tool(*command[1:]).returncode == 0
        yield process


def commands(start: str, broker: OttlaProcess) -> list[list[str]]:
    """The commands of the README that begin so, for this broker."""
    found = [line for line in COMMANDS if line.startswith(start)]
    assert found, start
    return [shlex.split(line.replace(ADDRESS, broker.bootstrap_servers)) for line in found]


def test_the_console_tools_write_and_read(broker) -> None:
    (write,) = commands("ottla console-producer", broker)
    assert ottla_tool(*write[1:], stdin="one\ntwo\n").returncode == 0
    (read,) = commands("ottla console-consumer", broker)
    done = ottla_tool(*read[1:], "--max-messages", "2")
    assert sorted(done.stdout.split()) == ["one", "two"], done.stderr
    (describe,) = commands("ottla consumer-groups", broker)
    rows = [line.split() for line in ottla_tool(*describe[1:]).stdout.splitlines() if "flights" in line]
    assert sum(int(row[3]) for row in rows) == 2
    assert [row[5] for row in rows] == ["0", "0", "0"]


@pytest.mark.parametrize("library", PYTHON)
def test_a_client_writes_and_reads_its_record_in_a_group(broker, library) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PYTHON[library].replace(ADDRESS, broker.bootstrap_servers)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "b'EWR,IAH'\n"), done.stderr


@pytest.mark.parametrize("library", IN_TRANSACTIONS)
def test_a_client_copies_a_record_in_a_transaction(broker, library) -> None:
    (write,) = commands("ottla console-producer", broker)
    assert ottla_tool(*write[1:], stdin="three\n").returncode == 0
    done = subprocess.run(
        [sys.executable, "-c", IN_TRANSACTIONS[library].replace(ADDRESS, broker.bootstrap_servers)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with WireClient(broker.bootstrap_servers) as wire:
        wait_until(lambda: [done.stdout] == [f"{each!r}\n" for each in last_copy(wire)], "the copy")
    (listing,) = commands("ottla transactions", broker)
    assert "copier-" in ottla_tool(*listing[1:]).stdout


def last_copy(wire: WireClient) -> list[bytes]:
    return committed_values(wire, "copies")[-1:]


@pytest.mark.kcat
def test_kcat_writes_and_reads_in_a_group(broker) -> None:
    program = kcat()
    assert program is not None
    lines = [line for line in COMMANDS if "kcat" in line]
    assert len(lines) == 2
    for line in lines:
        command = line.replace(ADDRESS, broker.bootstrap_servers).replace("kcat -b", f"{program} -b")
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr
    read = done.stdout.split()  # with what others wrote to the topic and nobody of the group has read
    assert (read.count("EWR,IAH"), {*read} <= {"EWR,IAH", "three"}) == (1, True), done.stdout


@pytest.mark.kafka
def test_kafkas_tools_read_and_describe(broker) -> None:
    for name, extra, expected in (
        ("topics", (), "Topic: flights"),
        ("console-consumer", ("--max-messages", "1"), "\n"),
        ("consumer-groups", (), ""),
    ):
        (command,) = commands(f"kafka-{name}.sh", broker)
        done = kafka_tool(name, *command[1:], *extra)
        assert (done.returncode, expected in done.stdout) == (0, True), done.stdout + done.stderr
