"""Settings under which a copy would lose the order of keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_jobs
from spark_jobs.failures import JobFailed
from spark_jobs.jobs.drain import command, refuse_unordered
from tests.unit.spark_jobs.jobs.shared import everything_shared


@pytest.mark.parametrize(
    "setting",
    [
        ("enable.idempotence", "False"),
        ("kafka.enable.idempotence", "false"),
        ("max.in.flight.requests.per.connection", "6"),
        ("partitioner.class", "org.example.Mine"),
        ("partitioner.ignore.keys", "true"),
        ("acks", "1"),
        ("retries", "0"),
    ],
)
def test_they_are_refused(setting: tuple[str, str]) -> None:
    with pytest.raises(JobFailed, match="does not keep the order of a key's records: leave it out"):
        refuse_unordered(dict([setting]))


def test_others_pass() -> None:
    refuse_unordered(
        {
            "security.protocol": "SASL_SSL",
            "max.in.flight.requests.per.connection": "5",
            "enable.idempotence": "true",
            "acks": "-1",
            "kafka.retries": "10",
            "linger.ms": "20",
        }
    )


def test_the_help_says_what_a_restart_repeats_and_that_timestamps_change() -> None:
    told = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "records come twice" in told
    assert "Spark's sink can't set timestamps" in told
    assert "available-now]" in told or "available- now]" in told


def test_the_page_tells_of_every_option_of_its_own() -> None:
    page = (Path(spark_jobs.__file__).parent / "AUDIT.md").read_text(encoding="utf-8")
    shared = {each.name for each in everything_shared.params}
    missing = [
        each.opts[0] for each in command.params if each.name not in shared and each.opts[0] not in page
    ]
    assert missing == []
