"""Options, and which errors are worth another try; the loop runs for real in tests/spark/jobs."""

from __future__ import annotations

from pathlib import Path

import click
import pymysql
import pytest
from click.testing import CliRunner

from spark_jobs.binlog.command import command, default_server_id, is_passing, pairs, tables_of


def test_tables() -> None:
    assert tables_of(("shop.items",), "items") == [("shop", "items")]
    assert tables_of(("a.b", "a.c"), "x-{table}") == [("a", "b"), ("a", "c")]
    with pytest.raises(click.UsageError, match=r"expected DATABASE.TABLE"):
        tables_of(("items",), "items")
    with pytest.raises(click.UsageError, match="a topic each"):
        tables_of(("a.b", "a.c"), "items")


def test_settings_of_the_client() -> None:
    assert pairs(("a=b", "c=d=e")) == {"a": "b", "c": "d=e"}
    with pytest.raises(click.UsageError, match="expected KEY=VALUE"):
        pairs(("a",))


def test_a_replicas_id_is_steady_and_valid(tmp_path: Path) -> None:
    one, other = default_server_id(tmp_path / "a"), default_server_id(tmp_path / "b")
    assert one == default_server_id(tmp_path / "a") != other
    assert 0 < one < 2**32


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (pymysql.err.OperationalError(2003, "can't connect"), True),
        (pymysql.err.OperationalError(1045, "access denied"), False),
        (pymysql.err.OperationalError(1236, "could not find first log file"), False),
        (pymysql.err.InterfaceError(0, ""), True),
        (ConnectionResetError(), True),
        (PermissionError(), False),
    ],
)
def test_errors_that_can_pass(error: Exception, passing: bool) -> None:
    assert is_passing(error) is passing


def test_help_has_every_option_and_an_example() -> None:
    text = CliRunner().invoke(command, ["--help"]).output
    assert "python -m spark_jobs binlog" in text
    for parameter in command.params:
        assert parameter.opts[0] in text


def test_what_is_missing_is_a_usage_error() -> None:
    done = CliRunner().invoke(command, ["--bootstrap", "h:1"])
    assert done.exit_code == 2
    assert "Missing option" in done.output
