"""What audit's options mean, and which are refused."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import spark_jobs
from spark_jobs.audit.reading import FilesPart, TopicPart
from spark_jobs.jobs.audit import command, compared_of, offsets_of
from tests.unit.spark_jobs.jobs.shared import everything_shared

TOPIC = TopicPart("orders", "localhost:9092")
ARCHIVE, LINES = FilesPart("/data"), FilesPart("/log", "lines")


def test_offsets_are_those_of_the_topic() -> None:
    assert offsets_of("orders", '{"orders": {"0": 5, "2": -1}, "other": {"0": 7}}', "--x") == {0: 5, 2: -1}
    assert offsets_of("orders", None, "--x") == {}
    for wrong in ("[]", "5", "{", '{"orders": {"a": 1}}', '{"orders": 5}'):
        with pytest.raises(click.UsageError, match="--x: expected"):
            offsets_of("orders", wrong, "--x")


def test_records_are_recognised_by_what_the_sides_allow() -> None:
    assert compared_of("auto", TOPIC, TOPIC, None, ()).match == "content"
    assert compared_of("auto", TOPIC, ARCHIVE, None, ()).match == "place"
    assert compared_of("content", TOPIC, ARCHIVE, None, ()).match == "content"
    lines = compared_of("auto", LINES, TOPIC, None, ())
    assert (lines.match, lines.fields) == ("content", ("value",))
    topics = compared_of("origin", TOPIC, TOPIC, "key, value", ("trace",))
    assert (topics.match, topics.fields, topics.ignored_headers) == ("origin", ("key", "value"), ("trace",))
    with pytest.raises(click.UsageError, match="--match place: lines files have no offsets"):
        compared_of("place", LINES, TOPIC, None, ())
    with pytest.raises(click.UsageError, match="choose from value"):
        compared_of("auto", LINES, TOPIC, "key,value", ())
    rows = FilesPart("/data", "csv", key="id")
    assert compared_of("auto", rows, TOPIC, None, ()).fields == ("key", "value")
    assert compared_of("auto", FilesPart("/data", "csv"), TOPIC, None, ()).fields == ("value",)
    with pytest.raises(click.UsageError, match="choose from key, value, headers, timestamp"):
        compared_of("auto", TOPIC, TOPIC, "key,offset", ())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--left", "a"], "give each side once"),
        (["--left", "a", "--left-files", "b", "--right", "c"], "give each side once"),
        (["--left", "a", "--right", "b", "--plot", "x.svg"], "--plot draws a --progress-file"),
        (["--left", "a", "--right", "b", "--starting-offsets", "x"], "--starting-offsets: expected"),
        (["--left", "a", "--right", "b", "--right-kafka-option", "x"], "KEY=VALUE"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_spark_starts(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(command, ["--bootstrap", "localhost:1", *arguments])
    assert done.exit_code == 2, done.output
    assert says in " ".join(done.output.split())


def test_the_help_tells_of_every_option() -> None:
    told = CliRunner().invoke(command, ["--help"]).output
    for option in command.params:
        assert option.opts[0] in told
    assert "Exit code 0 if it is so, 1 if not" in told
    assert Path("/data/orders").as_posix() in told


def test_the_page_tells_of_every_option_of_its_own() -> None:
    page = (Path(spark_jobs.__file__).parent / "AUDIT.md").read_text(encoding="utf-8")
    shared = {each.name for each in everything_shared.params}
    missing = [
        each.opts[0] for each in command.params if each.name not in shared and each.opts[0] not in page
    ]
    assert missing == []
