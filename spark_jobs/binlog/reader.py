"""Row events of the watched tables as changes, in the order of the binlog.

`Reader.read()` yields a `Change` for each row that was inserted, updated or deleted, a `Safe` where a
restart may begin (between transactions), and None when the server had nothing to say for a while. A row
whose primary key changed is two changes: the old key is deleted, then the new one created.

Refused, since it can't be told as changes of rows: TRUNCATE, statements that a session logged as text,
row images or names that a session left out, XA transactions. `skip_statements` passes over them with a
warning instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import click
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.constants import NONE_SOURCE
from pymysqlreplication.event import (
    FormatDescriptionEvent,
    HeartbeatLogEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, UpdateRowsEvent, WriteRowsEvent

from spark_jobs.binlog.position import BINLOG_START, Position, sequence_of
from spark_jobs.binlog.server import BinlogUnusable, Server
from spark_jobs.binlog.values import Json, row_values

HEARTBEAT_S = 0.5
EVENTS = [
    FormatDescriptionEvent,
    HeartbeatLogEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
    WriteRowsEvent,
    UpdateRowsEvent,
    DeleteRowsEvent,
]
COMMENTS = re.compile(r"/\*.*?\*/|^\s*--[^\n]*\n|^\s*#[^\n]*\n", re.DOTALL | re.MULTILINE)
CHANGES_ROWS = re.compile(r"\s*(insert|replace|update|delete|load|truncate|with)\b", re.IGNORECASE)
REMOVES = re.compile(r"\s*(drop|rename|alter)\s+(?:\w+\s+)*?table\b", re.IGNORECASE)

Table = tuple[str, str]


@dataclass(slots=True)
class Change:
    """One row's change. `key`, `before` and `after` are ready for JSON (see values.py)."""

    table: Table
    op: Literal["c", "u", "d"]
    key: dict[str, Json]
    before: dict[str, Json] | None
    after: dict[str, Json] | None
    ts_ms: int
    position: Position
    file: str
    gtid: str


class Safe(NamedTuple):
    """A place between two transactions, and when the server made that binlog file (seconds)."""

    file: str
    offset: int
    created_s: int


@dataclass(slots=True)
class Reader:
    """One pass over the binlog from a place on; `created_s` of that file is compared where it is known."""

    server: Server
    server_id: int
    kinds: Mapping[Table, Mapping[str, str]]
    file: str
    offset: int
    created_s: int = 0
    skip_statements: bool = False
    blocking: bool = True
    gtid: str = ""
    has_rows: bool = field(default=False, init=False)
    altered: bool = field(default=False, init=False)  # a watched table: `kinds` may have changed

    def read(self) -> Iterator[Change | Safe | None]:
        stream = BinLogStreamReader(
            self.server.settings(),
            server_id=self.server_id,
            resume_stream=True,
            blocking=self.blocking,
            log_file=self.file,
            log_pos=self.offset,
            only_events=EVENTS,
            only_schemas=sorted({database for database, _ in self.kinds}),
            only_tables=sorted({table for _, table in self.kinds}),
            slave_heartbeat=HEARTBEAT_S,
            enable_logging=False,
        )
        try:
            for event in stream:
                yield from self.of(event, stream.log_file)
        finally:
            stream.close()

    def of(self, event: Any, file: str) -> Iterator[Change | Safe | None]:
        """What one event means."""
        end = event.packet.log_pos
        if isinstance(event, RowsEvent):
            yield from self.rows(event, file)
        elif isinstance(event, XidEvent):
            yield self.safe(file, end)
        elif isinstance(event, MariadbGtidEvent):
            self.gtid, self.has_rows = event.gtid, False
        elif isinstance(event, QueryEvent):
            self.statement(event)
            yield self.safe(file, end) if event.query != "BEGIN" else None
        elif isinstance(event, RotateEvent):
            if event.next_binlog != self.file:  # else it only announces the file's name
                self.file, self.created_s = event.next_binlog, 0
                yield self.safe(event.next_binlog, BINLOG_START)
        elif isinstance(event, FormatDescriptionEvent):
            self.described(event.timestamp, file)
        elif isinstance(event, XAPrepareEvent) and self.has_rows:
            self.refuse(
                "an XA transaction: its rows are logged before it is known whether it commits", file, end
            )
        else:
            yield None

    def safe(self, file: str, offset: int) -> Safe:
        return Safe(file, offset, self.created_s)

    def described(self, created_s: int, file: str) -> None:
        """The first event of each file; it tells a file from another of the same name."""
        if self.created_s and created_s != self.created_s:
            raise BinlogUnusable(
                f"binlog {file} is not the file that was read before: the binlog was reset, or this is "
                "another server. Load the table anew, then begin with a new position file and --start latest."
            )
        self.created_s = created_s

    def rows(self, event: Any, file: str) -> Iterator[Change]:
        table = (event.schema, event.table)
        if table not in self.kinds:
            return
        self.has_rows = True
        key = (event.primary_key,) if isinstance(event.primary_key, str) else event.primary_key
        if not key or not key[0]:
            self.refuse(f"rows of {'.'.join(table)} without names or primary key", file, event.packet.log_pos)
            return
        place = Position(sequence_of(file), event.packet.log_pos, 0)
        for before, after in images(event, self.kinds[table]):
            if before is PARTIAL or after is PARTIAL:
                self.refuse(f"rows of {'.'.join(table)} with columns left out", file, event.packet.log_pos)
                return
            for op, row, kept in split(before, after, key):
                named = {name: row[name] for name in key}
                shown = after if op != "d" else None
                yield Change(table, op, named, kept, shown, event.timestamp * 1000, place, file, self.gtid)
                place = Position(place.sequence, place.offset, place.number + 1)

    def statement(self, event: Any) -> None:
        """Text that changes a watched table is no change of rows that could be followed."""
        if event.query in ("BEGIN", "COMMIT"):
            return
        text = COMMENTS.sub(" ", event.query)
        schema = event.schema.decode() if isinstance(event.schema, bytes) else event.schema
        for database, table in self.kinds:
            if not mentions(text, database, table, schema):
                continue
            if CHANGES_ROWS.match(text):
                self.refuse(
                    f"a statement on {database}.{table}: {text.strip()[:120]}", "", event.packet.log_pos
                )
            elif REMOVES.match(text):
                self.altered = True
                click.echo(f"{database}.{table}: {text.strip()[:120]}: no rows are told of it", err=True)

    def refuse(self, what: str, file: str, offset: int) -> None:
        where = f"{file or 'binlog'} at {offset}"
        if not self.skip_statements:
            raise BinlogUnusable(
                f"{where}: {what}. It can't be told as changes of rows (sessions must keep "
                "binlog_format=ROW, binlog_row_metadata=FULL, binlog_row_image=FULL and use DELETE rather "
                "than TRUNCATE). Bring the copies up to date by hand, then run with --skip-statements to go "
                "on behind it."
            )
        click.echo(f"{where}: {what}: passed over, as --skip-statements says", err=True)


PARTIAL: dict[str, Json] = {}

Image = dict[str, Json] | None


def images(event: Any, kinds: Mapping[str, str]) -> Iterator[tuple[Image, Image]]:
    """(before, after) of each row of an event; PARTIAL for an image that lacks columns."""

    def image(values: dict[str, Any], sources: dict[str, str]) -> Image:
        if NONE_SOURCE.COLS_BITMAP in sources.values():
            return PARTIAL
        return row_values(event.columns, values, sources, kinds)

    for row in event.rows:
        if isinstance(event, UpdateRowsEvent):
            yield (
                image(row["before_values"], row["before_none_sources"]),
                image(row["after_values"], row["after_none_sources"]),
            )
        elif isinstance(event, WriteRowsEvent):
            yield None, image(row["values"], row["none_sources"])
        else:
            yield image(row["values"], row["none_sources"]), None


def split(
    before: Image, after: Image, key: tuple[str, ...]
) -> Iterator[tuple[Literal["c", "u", "d"], dict[str, Json], Image]]:
    """(op, the row whose key it has, image before) of a row's change: two where the key changed."""
    if before is None and after is not None:
        yield "c", after, None
    elif before is not None and after is None:
        yield "d", before, before
    elif before is not None and after is not None:
        if any(before[name] != after[name] for name in key):
            yield "d", before, before
            yield "c", after, None
        else:
            yield "u", after, before


def mentions(statement: str, database: str, table: str, schema: str) -> bool:
    """Whether a statement names a table, qualified or in its default database."""
    name = re.escape(table)
    if re.search(rf"`?{re.escape(database)}`?\s*\.\s*`?{name}`?(?![\w$])", statement, re.IGNORECASE):
        return True
    return schema == database and bool(
        re.search(rf"(?<![\w$.])`?{name}`?(?![\w$.])", statement, re.IGNORECASE)
    )
