"""The metadata tree in one SQLite file: the store of a single node, no other process needed.

The file is a plain file in the root of the first log directory, where Kafka ignores plain files. One row is
one node. Journal: write-ahead log with `synchronous=FULL`, so that each commit is one fsync and a power cut
keeps what was acknowledged. The lock on the file is exclusive for as long as it is open: SQLite then keeps
the index of its write-ahead log in memory and maps no file, which on a full disk would end the process with
SIGBUS.

SQLite may block, so every statement runs through `run_blocking` (runtime/blocking.py), one at a time and in
the order of the calls. An error of the database itself (disk full, damaged file) is raised as
`StoreFailed`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from replication.metadata.notify import Listeners, events_of
from replication.metadata.store import (
    ANY_VERSION,
    BadVersion,
    Cancel,
    Check,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Put,
    SessionEvent,
    SessionExpired,
    StoreError,
    Watcher,
    check_path,
    parent_of,
)

FILE_NAME = "ottla-metadata.sqlite"

FORMAT = 1
"""Kept in SQLite's `user_version`; a file with a higher one was written by a later Ottla and is refused."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS node (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
    created_id INTEGER NOT NULL, ephemeral INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS node_parent ON node (parent);
CREATE TABLE IF NOT EXISTS counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO node VALUES ('/', '', x'', 0, 0, 0);
INSERT OR IGNORE INTO counter VALUES ('transaction', 0);
"""

T = TypeVar("T")


class RunBlocking(Protocol):
    """runtime's way to run a function that may block outside the event loop."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


class StoreFailed(StoreError):
    """The database could not be read or written; nothing was changed."""


class SqliteStore:
    """A session with the file at `path`. Ephemeral nodes of an earlier session are removed by `open`, because
    the lock of the data directory allows one process only.
    """

    def __init__(self, path: str, run_blocking: RunBlocking) -> None:
        self._path = path
        self._run_blocking = run_blocking
        self._connection: sqlite3.Connection | None = None
        self._turn = asyncio.Lock()
        self._listeners = Listeners()

    async def open(self) -> None:
        self._connection = await self._run(self._connect)
        self._listeners.tell_session(SessionEvent.CONNECTED)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._run(lambda: self._disconnect(connection))

    async def get(self, path: str) -> Node | None:
        connection = self._open_connection(path)
        return await self._run(lambda: _get(connection, path))

    async def children(self, path: str) -> list[str]:
        connection = self._open_connection(path)

        def read() -> list[str]:
            if _get(connection, path) is None:
                raise NoNode(path)
            rows = connection.execute("SELECT path FROM node WHERE parent = ? ORDER BY path", (path,))
            return [found.rpartition("/")[2] for (found,) in rows if found != "/"]

        return await self._run(read)

    async def subtree(self, path: str) -> dict[str, Node]:
        connection = self._open_connection(path)
        prefix = path.rstrip("/") + "/"

        def read() -> dict[str, Node]:
            # '0' is the character after '/', so the range is exactly what begins with the prefix.
            rows = connection.execute(
                "SELECT path, value, version, created_id FROM node WHERE path > ? AND path < ? ORDER BY path",
                (prefix, prefix[:-1] + "0"),
            )
            return {found: Node(value, version, created) for found, value, version, created in rows}

        return await self._run(read)

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        await self.multi([Create(path, value, ephemeral)])
        node = await self.get(path)
        if node is None:
            raise NoNode(path)
        return node.created_id

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        return (await self.multi([Put(path, value, version)]))[0]

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        for operation in operations:
            check_path(operation.path)
        connection = self._open_connection(operations[0].path if operations else "/")
        results = await self._run(lambda: _apply(connection, operations))
        self._listeners.tell(events_of(operations))
        return results

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        return self._listeners.watch(path, watcher)

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        return self._listeners.on_session(listener)

    def _open_connection(self, path: str) -> sqlite3.Connection:
        if self._connection is None:
            raise SessionExpired(path, "the store is not open")
        return self._connection

    async def _run(self, step: Callable[[], T]) -> T:
        async with self._turn:  # a connection takes one transaction at a time
            try:
                return await self._run_blocking(step)
            except sqlite3.Error as error:
                raise StoreFailed(self._path, str(error)) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None, timeout=0)
        try:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            (written_format,) = connection.execute("PRAGMA user_version").fetchone()
            if written_format > FORMAT:
                raise StoreFailed(self._path, f"was written by a later version (format {written_format})")
            connection.execute("BEGIN IMMEDIATE")
            if written_format < FORMAT:
                for statement in SCHEMA.strip().split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("DELETE FROM node WHERE ephemeral = 1")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("DELETE FROM node WHERE ephemeral = 1")
        finally:
            connection.close()


def _get(connection: sqlite3.Connection, path: str) -> Node | None:
    row = connection.execute("SELECT value, version, created_id FROM node WHERE path = ?", (path,)).fetchone()
    return None if row is None else Node(*row)


def _apply(connection: sqlite3.Connection, operations: Sequence[Operation]) -> list[int]:
    results: list[int] = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("UPDATE counter SET value = value + 1 WHERE name = 'transaction'")
        (transaction,) = connection.execute("SELECT value FROM counter WHERE name = 'transaction'").fetchone()
        for index, operation in enumerate(operations):
            try:
                results.append(_one(connection, operation, transaction))
            except StoreError as error:
                error.operation_index = index
                raise
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return results


def _one(connection: sqlite3.Connection, operation: Operation, transaction: int) -> int:
    match operation:
        case Create(path=path, value=value, ephemeral=ephemeral):
            parent = parent_of(path)
            if _get(connection, path) is not None:
                raise NodeExists(path)
            if _get(connection, parent) is None:
                raise NoNode(parent, "the parent does not exist")
            row = (path, parent, value, 0, transaction, int(ephemeral))
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
    node = _get(connection, path)
    if node is None:
        raise NoNode(path)
    if version not in (ANY_VERSION, node.version):
        raise BadVersion(path, f"has version {node.version}, not {version}")
    return node
