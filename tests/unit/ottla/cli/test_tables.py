"""Tables of the tools."""

from __future__ import annotations

from ottla.cli.tables import Column, print_table, table

COLUMNS = (Column("GROUP", 7, grows=True), Column("N", 4), Column("LAST"))


def test_columns_are_padded_and_one_grows_with_its_cells() -> None:
    assert table(COLUMNS, [("a-long-group", 1, "x"), ("b", 12345, None)]) == [
        "GROUP        N    LAST",
        "a-long-group 1    x",
        "b            12345 -",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert table(COLUMNS, []) == ["GROUP   N    LAST"]


def test_a_table_stands_below_an_empty_line(capsys) -> None:
    print_table(["a", "b"])
    assert capsys.readouterr().out == "\na\nb\n"
