"""Settings under which a copy would lose the order of keys."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from spark_jobs.failures import JobFailed
from spark_jobs.jobs.drain import command, refuse_unordered


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
