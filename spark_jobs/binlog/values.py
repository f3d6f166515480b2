"""Values of a row as JSON: what a MariaDB column becomes in a change event.

| column | JSON |
|---|---|
| integers, YEAR, BIT | number |
| DOUBLE, FLOAT | number, the shortest that reads back as the same value of the column's width |
| DECIMAL | string with all its digits |
| DATE, DATETIME, TIME | string as MariaDB prints it, as many fraction digits as the column has |
| TIMESTAMP | the same, in UTC |
| CHAR, VARCHAR, TEXT, ENUM, JSON | string |
| SET | string, members joined by commas in the order of the definition |
| UUID, INET4, INET6 | string (their kind is no part of the binlog: `kinds` comes from information_schema) |
| BINARY, VARBINARY, BLOB, geometry | string, base64 |

A date that the calendar lacks arrives without its digits; it becomes the zero date, `0000-00-00`.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import ipaddress
import json
import struct
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pymysqlreplication.constants import FIELD_TYPE, NONE_SOURCE

US_PER_S = 1_000_000
ZERO_DATES = {
    NONE_SOURCE.OUT_OF_DATE_RANGE: "0000-00-00",
    NONE_SOURCE.OUT_OF_DATETIME_RANGE: "0000-00-00 00:00:00",
    NONE_SOURCE.OUT_OF_DATETIME2_RANGE: "0000-00-00 00:00:00",
}
KIND_BYTES = {"uuid": 16, "inet6": 16, "inet4": 4}

Json = None | bool | int | float | str


class Column(Protocol):
    """What is used of mysql-replication's column."""

    name: str
    type: int


def to_json(value: object) -> bytes:
    """Compact JSON in UTF-8, keys in the order given: one row has one text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def row_values(
    columns: Sequence[Column], values: Mapping[str, Any], sources: Mapping[str, str], kinds: Mapping[str, str]
) -> dict[str, Json]:
    """A row image; `sources` says why a value is missing, `kinds` which columns are UUIDs or addresses."""
    row: dict[str, Json] = {}
    for column in columns:
        value = values[column.name]
        if value is None:
            row[column.name] = absent(sources.get(column.name, NONE_SOURCE.NULL))
        else:
            row[column.name] = present(column, value, kinds.get(column.name, ""))
    return row


def absent(source: str) -> str | None:
    """A value that mysql-replication gives as None."""
    if source == NONE_SOURCE.EMPTY_SET:
        return ""
    return ZERO_DATES.get(source)


def present(column: Column, value: Any, kind: str) -> Json:
    """One value that is not NULL."""
    if isinstance(value, bytes):
        return identifier(value, kind) if kind in KIND_BYTES else base64.b64encode(value).decode()
    if column.type == FIELD_TYPE.FLOAT:
        return shortest_float(value)
    if column.type == FIELD_TYPE.BIT:
        return int(value, 2)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.timedelta):
        return time_text(value, digits_of(column))
    if isinstance(value, datetime.datetime):
        return with_fraction(value.strftime("%H:%M:%S"), value.microsecond, digits_of(column), value.date())
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (set, frozenset)):
        return ",".join(member for member in column.set_values if member in value)  # type: ignore[attr-defined]
    if isinstance(value, (int, float, str)):
        return value
    raise TypeError(f"column {column.name}: no JSON for a {type(value).__name__}")


def digits_of(column: Column) -> int:
    """Fraction digits of a time column; formats from before MariaDB 5.3 have none."""
    return int(getattr(column, "fsp", 0))


def identifier(value: bytes, kind: str) -> str:
    """UUID or address; the binlog leaves out zero bytes at the end."""
    whole = value.ljust(KIND_BYTES[kind], b"\0")
    return str(uuid.UUID(bytes=whole)) if kind == "uuid" else str(ipaddress.ip_address(whole))


def shortest_float(value: float) -> float:
    """The shortest decimal that is the same 32-bit float: 0.1 rather than 0.10000000149011612."""
    for digits in (6, 7, 8):
        text = f"{value:.{digits}g}"
        if struct.pack("<f", float(text)) == struct.pack("<f", value):
            return float(text)
    return float(f"{value:.9g}")


def time_text(value: datetime.timedelta, digits: int) -> str:
    """TIME, which may be negative and longer than a day.

    mysql-replication reads the fraction of a negative time as it is stored, which is its complement.
    """
    total_us = value // datetime.timedelta(microseconds=1)
    sign = "-" if total_us < 0 else ""
    seconds, micros = divmod(abs(total_us), US_PER_S)
    if sign and micros:
        micros = US_PER_S - micros
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return sign + with_fraction(clock, micros, digits)


def with_fraction(clock: str, micros: int, digits: int, date: datetime.date | None = None) -> str:
    fraction = f".{micros:06d}"[: digits + 1] if digits else ""
    return f"{date.isoformat()} {clock}{fraction}" if date else clock + fraction
