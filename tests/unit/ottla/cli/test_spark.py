"""`ottla spark` becomes `python -m spark_jobs` with our packages on its path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from ottla.cli.spark import command
from ottla.paths import library_root


def test_all_arguments_go_to_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda *given: called.append(given))
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    CliRunner().invoke(command, ["archive", "--help", "--conf", "a=b"])
    [(program, arguments, environment)] = called
    assert program == sys.executable
    assert arguments == [sys.executable, "-m", "spark_jobs", "archive", "--help", "--conf", "a=b"]
    assert environment["PYTHONPATH"].split(os.pathsep) == [str(library_root()), "/somewhere"]


def test_it_lists_the_jobs(tmp_path: Path) -> None:
    root = str(library_root())
    done = subprocess.run(
        [sys.executable, "-m", "ottla", "spark", "--help"],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for job in ("ingest", "archive", "behaviour", "cdc_sync", "drain", "audit"):
        assert f"  {job} " in done.stdout
