"""Options of cdc_sync, and that its page names them and the binlog reader's."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import spark_jobs
from spark_jobs.binlog.command import command as binlog
from spark_jobs.jobs.cdc_sync import command

NEEDED = ["--bootstrap", "h:1", "--topic", "t", "--checkpoint", "c"]
OF_ALL_JOBS = {
    *("--bootstrap", "--kafka-config", "--kafka-option", "--topic", "--subscribe-pattern", "--assign"),
    *("--starting-offsets", "--max-offsets-per-trigger", "--min-partitions", "--fail-on-data-loss"),
    *("--no-record-at-time", "--source-option", "--checkpoint", "--trigger", "--progress-file", "--master"),
    *("--jars", "--packages", "--conf", "--spark-log"),
}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ([], "name a sink"),
        (["--mariadb-url", "jdbc:mariadb://h/d"], "belong together"),
        (["--search-index", "i", "--parquet", "p"], "belong together"),
        (["--parquet", "p", "--trigger", "sometimes"], "sometimes"),
    ],
)
def test_unusable_options(more: list[str], words: str) -> None:
    done = CliRunner().invoke(command, [*NEEDED, *more])
    assert done.exit_code == 2
    assert words in done.output


def test_help_names_every_option_and_shows_an_example() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    assert "python -m spark_jobs cdc_sync" in text
    for parameter in command.params:
        assert parameter.opts[0] in text


def test_the_page_names_every_option() -> None:
    text = (Path(spark_jobs.__file__).parent / "CDC.md").read_text(encoding="utf-8")
    own = {option.opts[0] for option in command.params} - OF_ALL_JOBS
    assert own
    for name in sorted(own | {option.opts[0] for option in binlog.params}):
        assert f"`{name}`" in text
