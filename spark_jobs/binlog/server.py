"""The MariaDB server behind a binlog: connection, settings that must be right, columns, where its logs begin.

Row events carry everything a change event needs only with binlog_format=ROW, binlog_row_metadata=FULL and
binlog_row_image=FULL; each is checked before the first event is read. They are a session's to change, so the
reader also looks at each event (see reader.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pymysql

from spark_jobs.binlog.position import BINLOG_START
from spark_jobs.binlog.values import KIND_BYTES

REQUIRED = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_metadata": "FULL",
    "binlog_row_image": "FULL",
}
# mysql-replication can't read the events that these make
FORBIDDEN = {"log_bin_compress": "ON"}
CONNECT_TIMEOUT_S = 10
READ_TIMEOUT_S = 60


class BinlogUnusable(RuntimeError):
    """The server or its binlog can't serve; the message says what to change."""


@dataclass(slots=True)
class Server:
    """How to reach the server."""

    host: str
    port: int
    user: str
    password: str = field(repr=False, default="")
    ssl_ca: str | None = None

    def settings(self) -> dict[str, Any]:
        """Arguments of pymysql.connect."""
        settings: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "connect_timeout": CONNECT_TIMEOUT_S,
            "read_timeout": READ_TIMEOUT_S,
        }
        if self.ssl_ca:
            settings["ssl"] = {"ca": self.ssl_ca}
        return settings

    def connect(self) -> pymysql.Connection[Any]:
        return pymysql.connect(**self.settings())

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def variables(connection: pymysql.Connection[Any], names: Sequence[str]) -> dict[str, str]:
    marks = ",".join(["%s"] * len(names))
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({marks})", tuple(names))
        return {name.lower(): value for name, value in cursor.fetchall()}


def check_settings(connection: pymysql.Connection[Any]) -> None:
    """Raises BinlogUnusable naming every setting that is wrong, and how to set it."""
    found = variables(connection, [*REQUIRED, *FORBIDDEN])
    wrong = [
        f"{name}={found.get(name, '(unknown)')}, must be {value}"
        for name, value in REQUIRED.items()
        if found.get(name, "").upper() != value
    ]
    wrong += [f"{name}={value}, must be OFF" for name, value in FORBIDDEN.items() if found.get(name) == value]
    if wrong:
        raise BinlogUnusable(
            f"the server's binlog can't be read as change events: {'; '.join(wrong)}. Set this in the "
            "server's configuration file and restart it; what was logged before stays unreadable, so begin "
            "after it."
        )


def server_name(connection: pymysql.Connection[Any]) -> str:
    """What tells one server from another."""
    found = variables(connection, ["server_id", "server_uid"])
    return found.get("server_uid") or f"server-id-{found.get('server_id', '?')}"


def check_table(connection: pymysql.Connection[Any], database: str, table: str) -> dict[str, str]:
    """The table's columns that are UUIDs or addresses; BinlogUnusable where it can't be followed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, column_key FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s",
            (database, table),
        )
        columns = cursor.fetchall()
    if not columns:
        raise BinlogUnusable(f"no table {database}.{table}, or no right to see it (GRANT SELECT)")
    if not any(key == "PRI" for _, _, key in columns):
        raise BinlogUnusable(f"table {database}.{table} has no primary key: its changes have no key")
    return {name: kind.lower() for name, kind, _ in columns if kind.lower() in KIND_BYTES}


def binlog_files(connection: pymysql.Connection[Any]) -> list[tuple[str, int]]:
    """The files that the server still has, oldest first, with their sizes."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            return [(row[0], int(row[1])) for row in cursor.fetchall()]
    except pymysql.err.OperationalError as error:
        raise BinlogUnusable(
            f"the server refuses to list its binlogs ({error.args[-1]}): "
            "GRANT BINLOG MONITOR, REPLICATION SLAVE ON *.* to the reader's user"
        ) from error


def check_available(files: Sequence[tuple[str, int]], file: str, offset: int) -> None:
    """Raises BinlogUnusable where the place to go on from is gone."""
    sizes = dict(files)
    if file not in sizes:
        oldest = files[0][0] if files else "none"
        raise BinlogUnusable(
            f"binlog {file} is gone from the server (the oldest is {oldest}): changes were purged before "
            "they were read. Load the table anew, then begin with a new position file and --start latest."
        )
    if offset > sizes[file]:
        raise BinlogUnusable(
            f"binlog {file} ends at {sizes[file]}, before the saved position {offset}: it was reset, or this "
            "is another server. Load the table anew, then begin with a new position file and --start latest."
        )


def start_at(files: Sequence[tuple[str, int]], start: str) -> tuple[str, int]:
    """The place that --start names: earliest, latest or FILE:OFFSET."""
    if not files:
        raise BinlogUnusable("the server has no binlog")
    if start == "earliest":
        return files[0][0], BINLOG_START
    if start == "latest":
        return files[-1]
    file, _, offset = start.rpartition(":")
    if not file or not offset.isdigit():
        raise BinlogUnusable(f"--start {start}: expected earliest, latest or FILE:OFFSET")
    check_available(files, file, int(offset))
    return file, int(offset)
