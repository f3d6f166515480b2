"""Which files of a stream's folder count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_jobs.jobs.archive import METADATA, command, committed_files


def entry(path: str, action: str = "add") -> str:
    return json.dumps({"path": path, "action": action})


def test_files_that_no_entry_names_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / METADATA
    log.mkdir()
    for number in (7, 8):
        (log / str(number)).write_text("v1\n" + entry(f"old-{number}"))
    (log / "9.compact").write_text("\n".join(["v1", entry("a"), entry("b"), entry("a", "delete")]))
    (log / "10").write_text("\n".join(["v1", entry("c")]))
    (log / "11").write_text("v1")
    (log / ".12.tmp").write_text("v1\n" + entry("not yet"))
    (tmp_path / "orphan.parquet").touch()
    assert committed_files(tmp_path) == ["b", "c"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Give --checkpoint to follow the topic, or --batch"),
        (("--batch", "--checkpoint", "ck"), "Give --checkpoint to follow the topic, or --batch"),
        (("--checkpoint", "ck", "--overwrite"), "--overwrite is for --batch"),
    ],
)
def test_options_that_contradict(arguments: tuple[str, ...], told: str) -> None:
    done = CliRunner().invoke(command, ["--bootstrap", "h:1", "--topic", "a", "--to", "out", *arguments])
    assert done.exit_code == 2
    assert told in done.output
