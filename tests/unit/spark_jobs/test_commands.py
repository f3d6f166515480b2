"""The jobs by name, and the process's exit codes."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from spark_jobs import commands
from spark_jobs.failures import JobFailed


def test_every_job_has_a_help_with_examples() -> None:
    for name in commands.JOBS:
        for called in (name, name.replace("_", "-")):
            done = CliRunner().invoke(commands.commands, [called, "--help"])
            assert done.exit_code == 0, done.output
        assert "Example" in done.output, name


def test_help_imports_no_job() -> None:
    code = (
        "import sys; from spark_jobs.commands import main\n"
        "try:\n main()\n"
        "finally:\n print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert "archive" in done.stdout
    assert done.stdout.endswith("False\n")


@pytest.mark.parametrize(
    ("raised", "code", "told"),
    [
        (JobFailed("topic a: gone"), 1, "error: topic a: gone\n"),
        (ValueError("odd"), 1, "error: ValueError: odd\n"),
        (ModuleNotFoundError("No module named 'pyspark'"), 1, "pip install 'ottla[spark]'"),
        (click.UsageError("no such option"), 2, "Error: no such option\n"),
        (click.Abort(), 130, ""),
        (None, 0, ""),
    ],
)
def test_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: Exception | None,
    code: int,
    told: str,
) -> None:
    def run(**_: object) -> None:
        if raised is not None:
            raise raised

    monkeypatch.setattr(commands.commands, "main", run)
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == code
    assert told in capsys.readouterr().err
