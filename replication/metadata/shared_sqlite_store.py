"""The metadata tree in one SQLite file for several processes of one machine: a cluster without ZooKeeper.

A session has a thread of its own, which does reads and commits in the order in which they were asked for and
looks every TICK_S whether another process has committed. Writes that are asked for while the thread is busy
go into one transaction.

A session belongs to an owner, which must not run twice at the same time (a broker locks its data directory):
`open` ends what the same owner left behind, so a broker that was killed need not wait for its session's end.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from replication.metadata import sqlite_tree
from replication.metadata.notify import Event, Listeners, events_of
from replication.metadata.shared_sqlite_session import Outcome, SharedSqliteSession, Write
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
    Watcher,
    WatchEvent,
    check_path,
)
from runtime.background import monotonic
from runtime.files import FileSystem
from runtime.ticking import TickingThread

TICK_S: Final = 0.05
WRITES_TOGETHER_MAX: Final = 256

_T = TypeVar("_T")
_Waiting = deque[tuple[Write, "asyncio.Future[Any]"]]


class SharedSqliteStore:
    """See the module."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        files: FileSystem,
        path: str,
        owner: str,
        session_timeout_ms: int,
    ) -> None:
        self._loop = loop
        self._files = files
        self._path = path
        self._owner = owner
        self._listeners = Listeners()
        self._open: _Open | None = None
        self._seen: int | None = None
        self._last_contact = monotonic()
        self._opening = asyncio.Lock()
        self.session_id = NO_SESSION
        self.session_timeout_ms = session_timeout_ms

    async def open(self) -> None:
        async with self._opening:
            if self._open is None:
                await self._begin()

    async def _begin(self) -> None:
        opened = _Open(self)
        try:
            begun = opened.thread.submit(lambda: opened.session.begin(self._seen))
            self.session_id, missed, self._seen = await begun
        except BaseException:
            opened.thread.submit(opened.session.end)
            opened.thread.stop()
            raise
        self._open = opened
        self._listeners.tell_session(SessionEvent.CONNECTED)
        self.tell(missed, self._seen)

    async def close(self) -> None:
        opened, self._open = self._open, None
        self.session_id, self._seen = NO_SESSION, None
        if opened is not None:
            self._last_contact = opened.session.contact
            ended = opened.thread.submit(opened.session.end)
            opened.thread.stop()
            await ended

    async def connected(self) -> None:
        self._require_open("/")

    def contact_age_ms(self) -> int:
        last = self._last_contact if self._open is None else self._open.session.contact
        return int((monotonic() - last) * 1000)

    async def get(self, path: str) -> Node | None:
        return await self._read(path, lambda connection: sqlite_tree.get(connection, path))

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        return await self._read("/", lambda connection: sqlite_tree.get_many(connection, paths))

    async def children(self, path: str) -> list[str]:
        return await self._read(path, lambda connection: sqlite_tree.children(connection, path))

    async def subtree(self, path: str) -> dict[str, Node]:
        return await self._read(path, lambda connection: sqlite_tree.subtree(connection, path))

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        check_path(path)
        operation = Create(path, value, ephemeral)

        def create(connection: sqlite3.Connection, session_id: int) -> tuple[int, list[Event]]:
            sqlite_tree.apply(connection, [operation], session_id)
            node = sqlite_tree.get(connection, path)
            assert node is not None, "it was just created"
            return node.created_id, events_of([operation])

        return int(await self._write(path, create))

    async def create_sequential(self, prefix: str, value: bytes) -> str:
        check_path(prefix + "0")

        def create(connection: sqlite3.Connection, session_id: int) -> tuple[str, list[Event]]:
            operation = Create(sqlite_tree.sequential_path(connection, prefix), value)
            sqlite_tree.apply(connection, [operation], session_id)
            return operation.path, events_of([operation])

        return str(await self._write(prefix, create))

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        return (await self.multi([Put(path, value, version)]))[0]

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        for operation in operations:
            check_path(operation.path)

        def apply(connection: sqlite3.Connection, session_id: int) -> tuple[list[int], list[Event]]:
            return sqlite_tree.apply(connection, operations, session_id), events_of(operations)

        results: list[int] = await self._write(operations[0].path if operations else "/", apply)
        return results

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        return self._listeners.watch(path, watcher)

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        return self._listeners.on_session(listener)

    async def _read(self, path: str, read: Callable[[sqlite3.Connection], _T]) -> _T:
        opened = self._require_open(path)
        return await opened.thread.submit(lambda: opened.session.read(read))

    async def _write(self, path: str, write: Write) -> Any:
        opened = self._require_open(path)
        outcome: asyncio.Future[Any] = self._loop.create_future()
        opened.waiting.append((write, outcome))
        opened.thread.submit(opened.write_what_waits)
        return await outcome

    def _require_open(self, path: str) -> _Open:
        if self._open is None:
            raise SessionExpired(path, "the store is not open")
        return self._open

    def tell(self, events: list[Event] | None, newest: int) -> None:
        """Called by the open session."""
        self._seen = max(newest, self._seen or 0)
        if events is None:
            events = [
                (path, event)
                for path in self._listeners.watched()
                for event in (WatchEvent.CHANGED, WatchEvent.CHILDREN)
            ]
        self._listeners.tell(events)

    def expired(self, opened: _Open) -> None:
        """Called by the open session: the others have ended it."""
        opened.thread.stop()
        if self._open is opened:
            self._last_contact = opened.session.contact
            self._open = None
            self.session_id = NO_SESSION
            self._listeners.tell_session(SessionEvent.EXPIRED)

    def start_session(self, opened: _Open) -> tuple[SharedSqliteSession, TickingThread]:
        """A session that has not begun, and its thread."""

        def post(function: Callable[..., None], *args: Any) -> None:
            opened.thread.post(function, *args)

        session = SharedSqliteSession(
            self._files,
            self._path,
            self._owner,
            self.session_timeout_ms,
            tell=lambda events, newest: post(self.tell, events, newest),
            over=lambda: post(self.expired, opened),
        )
        return session, TickingThread(self._loop, "metadata", TICK_S, session.tick)


class _Open:
    """What belongs to one session: its thread, its side on it, and the writes that wait for it."""

    def __init__(self, store: SharedSqliteStore) -> None:
        self.waiting: _Waiting = deque()
        self.session, self.thread = store.start_session(self)

    def write_what_waits(self) -> None:
        """On the thread. Finds nothing where an earlier call has taken the write along."""
        batch: list[tuple[Write, asyncio.Future[Any]]] = []
        while self.waiting and len(batch) < WRITES_TOGETHER_MAX:
            batch.append(self.waiting.popleft())
        if batch:
            outcomes = self.session.write([write for write, _ in batch])
            self.thread.post(_settle, [future for _, future in batch], outcomes)


def _settle(futures: list[asyncio.Future[Any]], outcomes: list[Outcome]) -> None:
    for future, (value, refusal) in zip(futures, outcomes, strict=True):
        if future.done():
            continue
        if refusal is None:
            future.set_result(value)
        else:
            future.set_exception(refusal)
