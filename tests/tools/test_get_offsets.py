"""`ottla get-offsets` beside Kafka's GetOffsetShell, on Ottla and on Apache Kafka."""

from __future__ import annotations

import pytest

from tests.support.tools import assert_same, ottla_tool
from tests.support.wire_client import WireClient


@pytest.fixture(scope="module")
def prepared() -> dict[str, bool]:
    """Which brokers have the topics of this module already."""
    return {}


@pytest.fixture
def at(either_broker, prepared) -> tuple[str, str]:
    """--bootstrap-server of a broker with records in `offsets-a` and none in `offsets-a.b`."""
    option = ("--bootstrap-server", either_broker.bootstrap_servers)
    if option[1] not in prepared:
        prepared[option[1]] = True
        with WireClient(option[1]) as wire:
            for name in ("offsets-a", "offsets-a.b"):
                wire.create_topic(name, 4)
        lines = "".join(f"key{number}\tvalue{number}\n" for number in range(50))
        sent = ottla_tool(
            "console-producer",
            *option,
            "--topic",
            "offsets-a",
            "--reader-property",
            "parse.key=true",
            stdin=lines,
        )
        assert sent.returncode == 0
    return option


@pytest.mark.parametrize(
    "arguments",
    [
        ("--topic", "offsets-.*"),
        ("--topic", "offsets-a", "--partitions", "0,2"),
        ("--topic-partitions", "offsets-a:0,offsets-a.b:1-3,offsets-a:3-"),
        ("--topic-partitions", "offsets-a:-2"),
        ("--topic", "offsets-a", "--time", "earliest"),
        ("--topic", "offsets-a", "--time", "-3"),
        ("--topic", "offsets-a", "--time", "earliest-local"),
        ("--topic", "offsets-a", "--time", "latest-tiered"),
        ("--topic", "offsets-a", "--time", "earliest-pending-upload"),
        ("--topic", "offsets-a", "--time", "1000"),
        ("--topic", "offsets-a", "--time", "99999999999999"),
        ("--topic", "offsets-missing"),
        ("--topic", "offsets-a", "--partitions", "9"),
        ("--topic", "offsets-a", "--time", "abc"),
        ("--topic", "offsets-a", "--partitions", "abc"),
        ("--topic", "offsets-a", "--topic-partitions", "offsets-a"),
    ],
    ids=" ".join,
)
def test_prints_what_kafkas_tool_prints(at, arguments) -> None:
    assert_same("get-offsets", *at, *arguments)
