"""What processes that share an SQLite file keep in it besides the tree: who is there, and what has changed.

`session` has a row for each live session. A session exists as long as its row does: every transaction of
its owner looks for the row first, so that a process which was taken for dead can't write any more. `change`
is the log of events, in the order of the commits, from which each process tells its watchers; the newest
CHANGES_KEPT are kept.

The functions run inside a transaction of their caller's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from replication.metadata import sqlite_tree
from replication.metadata.notify import Event, events_of
from replication.metadata.store import Delete, WatchEvent

CHANGES_KEPT: Final = 10_000

SCHEMA: Final = (
    *sqlite_tree.SCHEMA,
    "CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, timeout_ms INTEGER)",
    "CREATE TABLE IF NOT EXISTS change (id INTEGER PRIMARY KEY, path TEXT NOT NULL, event TEXT NOT NULL)",
)


class Session(NamedTuple):
    """A row of `session`."""

    id: int
    owner: str
    timeout_ms: int


def begin(connection: sqlite3.Connection, owner: str, timeout_ms: int) -> Session:
    """A new session; those that the same owner had are over."""
    for before in sessions(connection):
        if before.owner == owner:
            end(connection, before.id)
    session = Session(sqlite_tree.count(connection, "session"), owner, timeout_ms)
    connection.execute("INSERT INTO session VALUES (?, ?, ?)", session)
    return session


def end(connection: sqlite3.Connection, session_id: int) -> None:
    """The session is over, if it is not already, and its ephemeral nodes are gone."""
    rows = connection.execute("SELECT path FROM node WHERE ephemeral = ? ORDER BY path", (session_id,))
    deletions = [Delete(path) for (path,) in rows.fetchall()]
    sqlite_tree.apply(connection, deletions, session_id)
    log_changes(connection, events_of(deletions))
    connection.execute("DELETE FROM session WHERE id = ?", (session_id,))


def exists(connection: sqlite3.Connection, session_id: int) -> bool:
    found = connection.execute("SELECT 1 FROM session WHERE id = ?", (session_id,)).fetchone()
    return found is not None


def sessions(connection: sqlite3.Connection) -> list[Session]:
    rows = connection.execute("SELECT id, owner, timeout_ms FROM session ORDER BY id")
    return [Session(*row) for row in rows]


def log_changes(connection: sqlite3.Connection, events: Sequence[Event]) -> None:
    rows = [(path, event.value) for path, event in events]
    connection.executemany("INSERT INTO change (path, event) VALUES (?, ?)", rows)
    connection.execute("DELETE FROM change WHERE id <= ?", (last_change(connection) - CHANGES_KEPT,))


def last_change(connection: sqlite3.Connection) -> int:
    """The number of the newest change, 0 before there is one."""
    (last,) = connection.execute("SELECT max(id) FROM change").fetchone()
    return int(last or 0)


def changes_after(connection: sqlite3.Connection, seen: int) -> tuple[list[Event] | None, int]:
    """What happened after `seen`, None where the log begins later; and the number of the newest change."""
    query = "SELECT id, path, event FROM change WHERE id > ? ORDER BY id"
    rows = connection.execute(query, (seen,)).fetchall()
    if not rows:
        return [], seen
    if rows[0][0] != seen + 1:
        return None, rows[-1][0]
    return [(path, WatchEvent(event)) for _, path, event in rows], rows[-1][0]
