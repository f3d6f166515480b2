"""What events mean, with events made by hand; a real server's are in tests/spark/jobs/test_binlog.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spark_jobs.binlog.reader import Reader, mentions, split
from spark_jobs.binlog.server import BinlogUnusable, Server


@pytest.fixture
def reader() -> Reader:
    return Reader(Server("h", 1, "u"), 7, {("shop", "items"): {}}, "bin.000001", 4)


def statement(text: str, schema: str = "shop") -> SimpleNamespace:
    return SimpleNamespace(query=text, schema=schema, packet=SimpleNamespace(log_pos=99))


def test_a_row_that_keeps_its_key_is_one_change() -> None:
    assert list(split(None, {"id": 1}, ("id",))) == [("c", {"id": 1}, None)]
    assert list(split({"id": 1}, None, ("id",))) == [("d", {"id": 1}, {"id": 1})]
    assert list(split({"id": 1, "v": 2}, {"id": 1, "v": 3}, ("id",))) == [
        ("u", {"id": 1, "v": 3}, {"id": 1, "v": 2})
    ]


def test_a_row_that_changes_its_key_is_two() -> None:
    assert list(split({"a": 1, "b": 1}, {"a": 1, "b": 2}, ("a", "b"))) == [
        ("d", {"a": 1, "b": 1}, {"a": 1, "b": 1}),
        ("c", {"a": 1, "b": 2}, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE items",
        "truncate table `shop`.`items`",
        "/* a comment */ INSERT INTO items VALUES (1)",
        "DELETE FROM shop . items",
        "UPDATE other JOIN items USING (id) SET v = 1",
        "LOAD DATA INFILE 'x' INTO TABLE items",
    ],
)
def test_statements_that_change_rows_unseen_end_the_reader(reader: Reader, text: str) -> None:
    with pytest.raises(BinlogUnusable, match=r"at 99: a statement on shop.items: .* --skip-statements"):
        reader.statement(statement(text))


def test_they_are_passed_over_where_that_is_asked(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    reader.skip_statements = True
    reader.statement(statement("TRUNCATE items"))
    assert "passed over" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("BEGIN", "shop"),
        ("COMMIT", "shop"),
        ("TRUNCATE items", "elsewhere"),
        ("INSERT INTO items_old VALUES (1)", "shop"),
        ("TRUNCATE elsewhere.items", "shop"),
        ("CREATE TABLE items (id INT PRIMARY KEY)", "shop"),
        ("ANALYZE TABLE items", "shop"),
    ],
)
def test_other_statements_pass(reader: Reader, text: str, schema: str) -> None:
    reader.statement(statement(text, schema))
    assert not reader.altered


def test_a_changed_table_is_noted(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    reader.statement(statement("ALTER TABLE items ADD COLUMN n INT"))
    assert reader.altered
    assert "no rows are told of it" in capsys.readouterr().err


def test_another_file_of_the_same_name_is_seen(reader: Reader) -> None:
    reader.described(100, "bin.000001")
    reader.described(100, "bin.000001")
    with pytest.raises(BinlogUnusable, match=r"bin.000001 is not the file that was read before"):
        reader.described(200, "bin.000001")


def test_names_are_found_as_words() -> None:
    assert mentions("drop table ITEMS", "shop", "items", "shop")
    assert mentions("drop table `shop`.`items`", "shop", "items", "")
    assert not mentions("drop table my_items", "shop", "items", "shop")
    assert not mentions("drop table items$1", "shop", "items", "shop")
