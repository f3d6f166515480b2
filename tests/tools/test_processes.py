"""Tools as processes of their own, as users start them, beside the forks that all other tests run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ottla.__main__ import COMMANDS
from tests.support.forked_tools import ToolForker, environment_of_tools, free_tool_forker
from tests.support.ottla_process import OttlaProcess
from tests.support.tool_forker import NEVER_FORKED
from tests.support.tools import ottla_tool, tool_process

TOPIC = "processes"

AT = ("--bootstrap-server", "{broker}")

# tool -> arguments, and what it prints with them: each asks a broker that is alone, or reads its files
CASES = {
    "topics": ((*AT, "--describe", "--topic", TOPIC), "PartitionCount: 1"),
    "configs": ((*AT, "--describe", "--topic", TOPIC), f"Dynamic configs for topic {TOPIC} are:"),
    "get-offsets": ((*AT, "--topic", TOPIC), f"{TOPIC}:0:2\n"),
    "dump-log": (("--print-data-log", "--files", "{log}"), "payload: two"),
    "verify-log": (("{log_dir}",), ": 0 damaged"),
    "consumer-groups": ((*AT, "--list", "--state"), "STATE"),
    "share-groups": ((*AT, "--list", "--state"), "STATE"),
    "transactions": ((*AT, "list"), "TransactionalId"),
    "delete-records": ((*AT, "--offset-json-file", "{json}"), f"partition: {TOPIC}-0\tlow_watermark: 1"),
    "log-dirs": ((*AT, "--describe", "--topic-list", TOPIC), f'"partition":"{TOPIC}-0"'),
    "features": ((*AT, "describe"), "Feature: group.version"),
    "cluster": (("cluster-id", *AT), "Cluster ID: "),
    "leader-election": (
        (*AT, "--election-type", "preferred", "--all-topic-partitions"),
        "the broker does not offer ElectLeaders",
    ),
    "reassign-partitions": ((*AT, "--list"), "the broker does not offer ListPartitionReassignments"),
    "console-producer": ((*AT, "--topic", "processes-written"), ""),
    "console-consumer": (
        (*AT, "--topic", TOPIC, "--partition", "0", "--offset", "1", "--max-messages", "1"),
        "two\n",
    ),
}
NEED_A_CLUSTER = ("leader-election", "reassign-partitions")


def test_each_tool_has_a_case() -> None:
    assert sorted([*CASES, *NEVER_FORKED]) == sorted(COMMANDS)


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[str, str]:
    """A broker that has the topic with two lines, its files, and a file that names an offset."""
    json = tmp_path_factory.mktemp("processes") / "offsets.json"
    json.write_text(f'{{"version": 1, "partitions": [{{"topic": "{TOPIC}", "partition": 0, "offset": 1}}]}}')
    with OttlaProcess({"num.partitions": "1"}) as broker:
        option = ("--bootstrap-server", broker.bootstrap_servers)
        assert tool_process("topics", *option, "--create", "--topic", TOPIC).returncode == 0
        assert tool_process("console-producer", *option, "--topic", TOPIC, stdin="one\ntwo\n").returncode == 0
        log = broker.log_dir / f"{TOPIC}-0" / f"{0:020}.log"
        yield {
            "broker": broker.bootstrap_servers,
            "log_dir": str(broker.log_dir),
            "log": str(log),
            "json": str(json),
        }


@pytest.mark.parametrize("name", CASES)
def test_a_process_prints_what_a_fork_prints(places, name) -> None:
    arguments, expected = CASES[name]
    filled = [argument.format(**places) for argument in arguments]
    stdin = "line\n" if name == "console-producer" else None
    process, fork = (tool(name, *filled, stdin=stdin) for tool in (tool_process, ottla_tool))
    assert (process.stdout, process.stderr, process.returncode) == (fork.stdout, fork.stderr, fork.returncode)
    assert expected in process.stdout + process.stderr
    assert process.returncode == int(name in NEED_A_CLUSTER)


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-tool",),
        ("topics", "--help"),
        ("topics", "--no-option"),
        ("topics", "--bootstrap-server", "127.0.0.1:1", "--list"),
        ("console-consumer", "--topic", "a", "--include", "b"),
        ("verify-log", "--log-dir", "/nowhere"),
    ],
    ids=" ".join,
)
def test_a_process_ends_as_a_fork_ends(arguments) -> None:
    process, fork = (tool(*arguments) for tool in (tool_process, ottla_tool))
    assert (process.stdout, process.stderr, process.returncode) == (fork.stdout, fork.stderr, fork.returncode)


def forker() -> ToolForker:
    with free_tool_forker("topics") as found:
        assert found is not None
        return found


def test_a_forker_that_has_ended_is_followed_by_another() -> None:
    first = forker()
    first.process.kill()
    first.process.wait()
    assert ottla_tool("topics", "--help").returncode == 0
    assert forker() is not first


def test_a_fork_has_the_environment_of_the_test(monkeypatch) -> None:
    first = forker()
    usual = ottla_tool("topics", "--help").stdout
    monkeypatch.setenv("COLUMNS", "40")
    assert len(ottla_tool("topics", "--help").stdout.splitlines()) > len(usual.splitlines())
    assert forker() is not first


def test_a_fork_that_does_not_end_is_killed(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waits = ("topics", "--list", "--command-config", str(fifo))
    with pytest.raises(subprocess.TimeoutExpired):
        forker().run(waits, None, timeout_s=1.0)
    assert ottla_tool("topics", "--help").returncode == 0


def test_a_forker_ends_with_its_test() -> None:
    forker = ToolForker(environment_of_tools())
    process = forker.process
    forker._door.close()
    process.wait(60)
    assert process.returncode == 0
    forker.close()
