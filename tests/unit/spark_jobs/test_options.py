"""Shared options of the jobs become dataclasses; what is wrong is said with the option's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from spark_jobs.kafka import Kafka, Source
from spark_jobs.options import (
    Stream,
    kafka_options,
    launch_options,
    parse_trigger,
    properties,
    range_options,
    source_options,
    stream_options,
)
from spark_jobs.session import Launch

SEEN: list[dict[str, Any]] = []


@click.command()
@kafka_options
@source_options
@stream_options
@launch_options
@click.option("--own")
def job(**found: Any) -> None:
    SEEN.append(found)


@click.command()
@range_options
def ranged(source: Source) -> None:
    SEEN.append({"source": source})


def call(command: click.Command, *arguments: str) -> dict[str, Any]:
    SEEN.clear()
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return SEEN[0]


def refused(command: click.Command, *arguments: str) -> str:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2
    return done.output


BASE = ("--bootstrap", "h:1", "--topic", "a,b", "--checkpoint", "ck")


def test_options_become_dataclasses(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# a comment\nsecurity.protocol = SASL_SSL\nbootstrap.servers=other:1\n"
        "sasl.jaas.config=org.x.Module required \\\n    username=a=b;\n! another\n\n"
    )
    found = call(
        job,
        *BASE,
        *("--kafka-config", str(file), "--kafka-option", "security.protocol=SSL"),
        *("--starting-offsets", "2013-01-01", "--max-offsets-per-trigger", "7", "--no-fail-on-data-loss"),
        *("--trigger", "5 seconds", "--progress-file", "p.jsonl", "--own", "x"),
        *("--master", "local[1]", "--jars", "a.jar", "--conf", "a=b=c", "--spark-log", "warn"),
    )
    assert found == {
        "kafka": Kafka(
            "h:1", {"security.protocol": "SSL", "sasl.jaas.config": "org.x.Module required username=a=b;"}
        ),
        "source": Source(
            ("a", "b"), starting="2013-01-01", max_offsets_per_trigger=7, fail_on_data_loss=False
        ),
        "stream": Stream("ck", "5 seconds", Path("p.jsonl")),
        "launch": Launch("local[1]", "a.jar", (), (("a", "b=c"),), "WARN"),
        "own": "x",
    }


def test_defaults() -> None:
    found = call(job, *BASE)
    assert found["source"] == Source(("a", "b"), starting="earliest")
    assert found["stream"].trigger == "fast"
    assert found["launch"] == Launch()


def test_a_range_has_an_end() -> None:
    found = call(ranged, "--assign", '{"a": [0]}', "--ending-offsets", "latest")
    assert found["source"] == Source(assign='{"a": [0]}', starting="earliest", ending="latest")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--bootstrap", "h:1", "--checkpoint", "ck"), "Give one of --topic, --subscribe-pattern"),
        ((*BASE, "--assign", "{}"), "Give one of --topic, --subscribe-pattern"),
        ((*BASE, "--starting-offsets", "soon"), "'soon' is none of earliest"),
        ((*BASE, "--kafka-option", "x"), "'x' is not KEY=VALUE"),
        ((*BASE, "--trigger", "often"), "'often' is none of: 5 seconds"),
        ((*BASE, "--max-offsets-per-trigger", "0"), "--max-offsets-per-trigger"),
        (("--topic", "a", "--checkpoint", "ck"), "--bootstrap"),
        (("--topic", "a", "--bootstrap", "h:1"), "--checkpoint"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(job, *arguments)


@pytest.mark.parametrize(
    ("told", "arguments"),
    [
        (None, {"processingTime": "0 seconds"}),
        ("fast", {"processingTime": "0 seconds"}),
        ("available-now", {"availableNow": True}),
        ("once", {"availableNow": True}),
        ("5 seconds", {"processingTime": "5 seconds"}),
        ("continuous:1 second", {"continuous": "1 second"}),
    ],
)
def test_triggers(told: str | None, arguments: dict[str, Any]) -> None:
    assert parse_trigger(told) == arguments


def test_a_file_of_properties_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("")
    assert properties(tmp_path / "none") == {}
