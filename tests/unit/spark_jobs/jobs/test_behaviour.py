"""Options of behaviour."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_jobs
from spark_jobs.jobs.behaviour import command
from tests.unit.spark_jobs.jobs.shared import everything_shared

NEEDED = ["--bootstrap", "localhost:1", "--topic", "views", "--out", "/o", "--checkpoint", "/c"]


@pytest.mark.parametrize(
    "option", ["--session-gap", "--watermark", "--within", "--window", "--longest-session"]
)
@pytest.mark.parametrize("value", ["30", "minutes", "-5 minutes", "5 fortnights", "1 minute'"])
def test_durations_are_checked_before_spark_starts(option: str, value: str) -> None:
    done = CliRunner().invoke(command, [*NEEDED, option, value])
    assert done.exit_code == 2
    assert "no duration such as '30 minutes'" in " ".join(done.output.split())


def test_the_help_tells_of_every_option_and_of_what_a_restart_repeats() -> None:
    told = CliRunner().invoke(command, ["--help"]).output
    for option in command.params:
        assert option.opts[0] in told
    assert "once, also after a kill" in " ".join(told.split())


def test_the_page_tells_of_every_option_of_its_own() -> None:
    page = (Path(spark_jobs.__file__).parent / "BEHAVIOUR.md").read_text(encoding="utf-8")
    shared = {each.name for each in everything_shared.params}
    missing = [
        each.opts[0] for each in command.params if each.name not in shared and each.opts[0] not in page
    ]
    assert missing == []
