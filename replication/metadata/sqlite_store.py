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

from replication.metadata import sqlite_tree
from replication.metadata.notify import Listeners, events_of
from replication.metadata.sqlite_tree import FORMAT_ALONE, SCHEMA, format_of, make_tables, transaction
from replication.metadata.store import (
    ANY_VERSION,
    NO_SESSION,
    Cancel,
    Create,
    Delete,
    Node,
    Operation,
    Put,
    SessionEvent,
    SessionExpired,
    StoreFailed,
    Watcher,
    check_path,
)

FILE_NAME = "ottla-metadata.sqlite"

SESSION_ID = 1
"""Of every session: only one is open at a time, and `open` removes what the one before left."""

T = TypeVar("T")


class RunBlocking(Protocol):
    """runtime's way to run a function that may block outside the event loop."""

    def __call__(self, function: Callable[[], T], /) -> Awaitable[T]: ...


class SqliteStore:
    """A session with the file at `path`. Ephemeral nodes of an earlier session are removed by `open`, because
    the lock of the data directory allows one process only.
    """

    def __init__(self, path: str, run_blocking: RunBlocking) -> None:
        self._path = path
        self._run_blocking = run_blocking
        self._connection: sqlite3.Connection | None = None
        self._turn = asyncio.Lock()
        self._opening = asyncio.Lock()
        self._listeners = Listeners()
        self.session_timeout_ms = 18_000  # nobody waits for it: nothing stands between the store and its file

    async def open(self) -> None:
        async with self._opening:
            if self._connection is None:
                self._connection = await self._run(self._connect)
                self._listeners.tell_session(SessionEvent.CONNECTED)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._run(lambda: self._disconnect(connection))

    @property
    def session_id(self) -> int:
        return NO_SESSION if self._connection is None else SESSION_ID

    async def connected(self) -> None:
        self._open_connection("/")

    def contact_age_ms(self) -> int:
        return 0

    async def get(self, path: str) -> Node | None:
        connection = self._open_connection(path)
        return await self._run(lambda: sqlite_tree.get(connection, path))

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        connection = self._open_connection("/")
        return await self._run(lambda: sqlite_tree.get_many(connection, paths))

    async def children(self, path: str) -> list[str]:
        connection = self._open_connection(path)
        return await self._run(lambda: sqlite_tree.children(connection, path))

    async def subtree(self, path: str) -> dict[str, Node]:
        connection = self._open_connection(path)
        return await self._run(lambda: sqlite_tree.subtree(connection, path))

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        check_path(path)
        connection = self._open_connection(path)
        operation = Create(path, value, ephemeral)

        def create() -> int:
            with transaction(connection):
                sqlite_tree.apply(connection, [operation], SESSION_ID)
                node = sqlite_tree.get(connection, path)
                assert node is not None, "it was just created"
                return node.created_id

        created_id = await self._run(create)
        self._listeners.tell(events_of([operation]))
        return created_id

    async def create_sequential(self, prefix: str, value: bytes) -> str:
        check_path(prefix + "0")
        connection = self._open_connection(prefix)

        def create() -> Create:
            with transaction(connection):
                operation = Create(sqlite_tree.sequential_path(connection, prefix), value)
                sqlite_tree.apply(connection, [operation], SESSION_ID)
                return operation

        created = await self._run(create)
        self._listeners.tell(events_of([created]))
        return created.path

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        return (await self.multi([Put(path, value, version)]))[0]

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        connection = self._open_connection(operations[0].path if operations else "/")

        def apply() -> list[int]:
            for operation in operations:  # a topic may have 20,000 nodes: not on the event loop
                check_path(operation.path)
            with transaction(connection):
                return sqlite_tree.apply(connection, operations, SESSION_ID)

        results = await self._run(apply)
        if self._listeners.watched():
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
            written_format = format_of(connection, self._path)
            with transaction(connection):
                if written_format < FORMAT_ALONE:
                    make_tables(connection, SCHEMA, FORMAT_ALONE)
                connection.execute("DELETE FROM node WHERE ephemeral != 0")
        except BaseException:
            connection.close()
            raise
        return connection

    def _disconnect(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("DELETE FROM node WHERE ephemeral != 0")
        finally:
            connection.close()
