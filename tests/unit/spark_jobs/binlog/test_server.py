"""Where a reader may begin; settings and tables are asked of a real server in tests/spark/jobs."""

from __future__ import annotations

import pytest

from spark_jobs.binlog.server import BinlogUnusable, Server, check_available, start_at

FILES = [("bin.000003", 500), ("bin.000004", 90)]


@pytest.mark.parametrize(
    ("start", "place"),
    [
        ("earliest", ("bin.000003", 4)),
        ("latest", ("bin.000004", 90)),
        ("bin.000003:120", ("bin.000003", 120)),
    ],
)
def test_where_to_begin(start: str, place: tuple[str, int]) -> None:
    assert start_at(FILES, start) == place


@pytest.mark.parametrize("start", ["", "now", "bin.000003", "bin.000003:x"])
def test_other_words_are_refused(start: str) -> None:
    with pytest.raises(BinlogUnusable, match="expected earliest, latest or FILE:OFFSET"):
        start_at(FILES, start)


def test_a_server_without_binlog() -> None:
    with pytest.raises(BinlogUnusable, match="no binlog"):
        start_at([], "earliest")


def test_what_is_gone() -> None:
    check_available(FILES, "bin.000004", 90)
    with pytest.raises(BinlogUnusable, match=r"bin.000002 is gone .*oldest is bin.000003"):
        check_available(FILES, "bin.000002", 4)
    with pytest.raises(BinlogUnusable, match="ends at 90, before the saved position 91"):
        check_available(FILES, "bin.000004", 91)


def test_a_password_is_not_printed() -> None:
    assert "secret" not in repr(Server("h", 1, "u", "secret"))
