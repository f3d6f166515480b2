"""Columns of MariaDB as JSON. What comes out of a real server is in tests/spark/jobs/test_binlog.py."""

from __future__ import annotations

import datetime
import struct
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysqlreplication.constants import FIELD_TYPE, NONE_SOURCE

from spark_jobs.binlog.values import absent, present, row_values, shortest_float, time_text, to_json


def column(kind: int, **more: object) -> SimpleNamespace:
    return SimpleNamespace(name="c", type=kind, **more)


def test_a_row_keeps_the_order_of_its_columns() -> None:
    columns = [SimpleNamespace(name=name, type=FIELD_TYPE.LONG) for name in ("z", "a", "m")]
    row = row_values(columns, {"a": 1, "m": None, "z": 2}, {"m": NONE_SOURCE.NULL}, {})
    assert to_json(row) == b'{"z":2,"a":1,"m":null}'


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (FIELD_TYPE.LONGLONG, 2**64 - 1, 2**64 - 1),
        (FIELD_TYPE.NEWDECIMAL, Decimal("-0.0000001"), "-0.0000001"),
        (FIELD_TYPE.NEWDECIMAL, Decimal("1E+5"), "100000"),
        (FIELD_TYPE.BIT, "10101", 21),
        (FIELD_TYPE.BLOB, b"\xde\xad", "3q0="),
        (FIELD_TYPE.BLOB, "text", "text"),
        (FIELD_TYPE.DATE, datetime.date(33, 1, 2), "0033-01-02"),
        (FIELD_TYPE.DOUBLE, 0.1, 0.1),
    ],
)
def test_values(kind: int, value: object, expected: object) -> None:
    assert present(column(kind), value, "") == expected


def test_a_date_with_time_has_the_digits_of_its_column() -> None:
    moment = datetime.datetime(2013, 1, 2, 3, 4, 5, 120_000)
    texts = [present(column(FIELD_TYPE.DATETIME2, fsp=digits), moment, "") for digits in (0, 3, 6)]
    assert texts == ["2013-01-02 03:04:05", "2013-01-02 03:04:05.120", "2013-01-02 03:04:05.120000"]


def test_a_set_is_in_the_order_of_its_definition() -> None:
    kind = column(FIELD_TYPE.SET, set_values=["z", "a", "m"])
    assert present(kind, {"m", "z"}, "") == "z,m"


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("uuid", b"C\xc0j\xeb\xeb%\x11\xf1\xa8\xb2\x02\xfc", "43c06aeb-eb25-11f1-a8b2-02fc00000000"),
        ("inet6", b" \x01\r\xb8", "2001:db8::"),
        ("inet4", b"\x7f\0\0\x01", "127.0.0.1"),
    ],
)
def test_identifiers_whose_last_zero_bytes_the_binlog_leaves_out(kind: str, value: bytes, text: str) -> None:
    assert present(column(FIELD_TYPE.STRING), value, kind) == text


def test_why_a_value_is_missing() -> None:
    assert absent(NONE_SOURCE.NULL) is None
    assert absent(NONE_SOURCE.EMPTY_SET) == ""
    assert absent(NONE_SOURCE.OUT_OF_DATE_RANGE) == "0000-00-00"
    assert absent(NONE_SOURCE.OUT_OF_DATETIME2_RANGE) == "0000-00-00 00:00:00"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_short_float_reads_back_as_the_same_32_bits(value: float) -> None:
    short = shortest_float(value)
    assert struct.pack("<f", short) == struct.pack("<f", value)
    assert float(f"{short:.9g}") == short


@pytest.mark.parametrize(
    ("seconds", "text"),
    # as mysql-replication gives them: the fraction of a negative time is its complement
    [
        ("3723.25", "01:02:03.250"),
        ("-3723.75", "-01:02:03.250"),
        ("-3723", "-01:02:03.000"),
        ("0", "00:00:00.000"),
    ],
)
def test_times(seconds: str, text: str) -> None:
    assert time_text(datetime.timedelta(seconds=float(seconds)), 3) == text


def test_a_value_that_json_lacks_is_an_error_with_the_columns_name() -> None:
    with pytest.raises(TypeError, match="column c: no JSON for a complex"):
        present(column(FIELD_TYPE.DOUBLE), 1j, "")
