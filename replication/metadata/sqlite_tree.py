"""The metadata tree as tables of an SQLite database, and the statements that read and change them.

One row is one node; `ephemeral` holds the id of the session that owns it, 0 for a node that stays. `counter`
holds the id of the last transaction, and for each parent of sequential nodes their next number under
`children:PATH`.

The functions run wherever their caller's connection may block, never on the event loop.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from replication.metadata.store import (
    ANY_VERSION,
    NO_SESSION,
    BadVersion,
    Check,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    ParentEphemeral,
    Put,
    StoreError,
    StoreFailed,
    parent_of,
)

FORMAT_ALONE = 1
"""SQLite's `user_version` of a file that one process at a time uses."""

FORMAT_SHARED = 2
"""The same with the tables of sessions and changes; the owners of ephemeral nodes are ids of sessions."""

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS node (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
    created_id INTEGER NOT NULL, ephemeral INTEGER NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS node_parent ON node (parent)",
    "CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT OR IGNORE INTO node VALUES ('/', '', x'', 0, 0, 0)",
    "INSERT OR IGNORE INTO counter VALUES ('transaction', 0)",
)


def format_of(connection: sqlite3.Connection, path: str) -> int:
    """The format of the file, 0 for an empty one. Raises StoreFailed for one of a later version."""
    (written,) = connection.execute("PRAGMA user_version").fetchone()
    if written > FORMAT_SHARED:
        raise StoreFailed(path, f"was written by a later version (format {written})")
    return int(written)


def make_tables(connection: sqlite3.Connection, statements: Sequence[str], version: int) -> None:
    """Inside a transaction."""
    for statement in statements:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """What is done inside is durable afterwards, or undone when something is raised."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def get(connection: sqlite3.Connection, path: str) -> Node | None:
    query = "SELECT value, version, created_id, ephemeral FROM node WHERE path = ?"
    row = connection.execute(query, (path,)).fetchone()
    return None if row is None else Node(*row)


def get_many(connection: sqlite3.Connection, paths: Sequence[str]) -> dict[str, Node]:
    """The nodes of those paths that exist, in the order of `paths`."""
    found = ((path, get(connection, path)) for path in paths)
    return {path: node for path, node in found if node is not None}


def children(connection: sqlite3.Connection, path: str) -> list[str]:
    """Names in order. Raises NoNode."""
    rows = connection.execute("SELECT path FROM node WHERE parent = ? ORDER BY path", (path,)).fetchall()
    if not rows and get(connection, path) is None:
        raise NoNode(path)
    return [found.rpartition("/")[2] for (found,) in rows]


def subtree(connection: sqlite3.Connection, path: str) -> dict[str, Node]:
    """All nodes below `path`, sorted by their paths."""
    prefix = path.rstrip("/") + "/"
    # '0' is the character after '/', so the range is exactly what begins with the prefix.
    rows = connection.execute(
        "SELECT path, value, version, created_id, ephemeral FROM node"
        " WHERE path > ? AND path < ? ORDER BY path",
        (prefix, prefix[:-1] + "0"),
    )
    return {found: Node(value, version, created, owner) for found, value, version, created, owner in rows}


def count(connection: sqlite3.Connection, name: str) -> int:
    """Raise a counter and return its value; the first is 1. Inside a transaction."""
    connection.execute(
        "INSERT INTO counter VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1", (name,)
    )
    (value,) = connection.execute("SELECT value FROM counter WHERE name = ?", (name,)).fetchone()
    return int(value)


def sequential_path(connection: sqlite3.Connection, prefix: str) -> str:
    """The next path with a number after `prefix`. Inside a transaction."""
    number = count(connection, f"children:{parent_of(prefix)}") - 1
    return f"{prefix}{number:010}"


def apply(connection: sqlite3.Connection, operations: Sequence[Operation], session_id: int) -> list[int]:
    """All operations, inside a transaction; the versions afterwards, as `MetadataStore.multi` tells them.

    Raises the StoreError of the first one refused, upon which the transaction has to be undone.
    """
    transaction_id = count(connection, "transaction")
    results: list[int] = []
    for index, operation in enumerate(operations):
        try:
            results.append(_one(connection, operation, transaction_id, session_id))
        except StoreError as error:
            error.operation_index = index
            raise
    return results


def _one(connection: sqlite3.Connection, operation: Operation, transaction_id: int, session_id: int) -> int:
    match operation:
        case Create(path=path, value=value, ephemeral=ephemeral):
            parent_path = parent_of(path)
            if get(connection, path) is not None:
                raise NodeExists(path)
            parent = get(connection, parent_path)
            if parent is None:
                raise NoNode(parent_path, "the parent does not exist")
            if parent.owner != NO_SESSION:
                raise ParentEphemeral(parent_path)
            owner = session_id if ephemeral else NO_SESSION
            row = (path, parent_path, value, 0, transaction_id, owner)
            connection.execute("INSERT INTO node VALUES (?, ?, ?, ?, ?, ?)", row)
            return 0
        case Put(path=path, value=value, version=version):
            node = _expect(connection, path, version)
            change = (value, node.version + 1, path)
            connection.execute("UPDATE node SET value = ?, version = ? WHERE path = ?", change)
            return node.version + 1
        case Delete(path=path, version=version):
            _expect(connection, path, version)
            if connection.execute("SELECT 1 FROM node WHERE parent = ? LIMIT 1", (path,)).fetchone():
                raise NotEmpty(path)
            connection.execute("DELETE FROM node WHERE path = ?", (path,))
            return -1
        case Check(path=path, version=version):
            return _expect(connection, path, version).version


def _expect(connection: sqlite3.Connection, path: str, version: int) -> Node:
    node = get(connection, path)
    if node is None:
        raise NoNode(path)
    if version not in (ANY_VERSION, node.version):
        raise BadVersion(path, f"has version {node.version}, not {version}")
    return node
