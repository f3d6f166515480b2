"""The command group."""

from __future__ import annotations

import sys

import pytest

from ottla import __main__ as command_line
from ottla import __version__


def run(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["ottla", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    return ended.value.code or 0


def test_the_version_is_printed(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"ottla {__version__}\n"


def test_help_lists_every_command_without_importing_it(monkeypatch, capsys) -> None:
    monkeypatch.setattr(command_line.importlib, "import_module", None)
    assert run(monkeypatch, "--help") == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in command_line.COMMANDS)


@pytest.mark.parametrize("name", [name for name in command_line.COMMANDS if name != "spark"])
def test_every_command_has_help(monkeypatch, capsys, name) -> None:
    """`ottla spark` becomes another process: tests/unit/ottla/cli/test_spark.py."""
    assert run(monkeypatch, name, "--help") == 0
    assert "--help" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("nope",), ("topics", "--nope"), ("topics",)])
def test_a_wrong_call_ends_with_1_as_kafkas_tools_do(monkeypatch, capsys, arguments) -> None:
    assert run(monkeypatch, *arguments) == 1
    assert capsys.readouterr().err


def test_ctrl_c_ends_with_130(monkeypatch) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line.commands, "main", interrupted)
    assert run(monkeypatch) == 130
