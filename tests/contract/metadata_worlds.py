"""The trees that the contract of MetadataStore is proved on, and what can happen to a session with each."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from kazoo.client import KazooClient

from replication.metadata import sqlite_sessions, sqlite_tree
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.shared_sqlite_store import SharedSqliteStore
from replication.metadata.sqlite_store import SqliteStore
from replication.metadata.store import MetadataStore, WatchEvent
from replication.metadata.zookeeper_settings import ZookeeperSettings
from replication.metadata.zookeeper_store import ZookeeperStore
from runtime.blocking import ThreadBlocking
from runtime.clock import SystemClock
from runtime.os_files import OsFileSystem
from tests.support.tcp_proxy import TcpProxy
from tests.support.zookeeper_process import ZookeeperProcess

SESSION_TIMEOUT_MS = 40_000  # nothing here waits for it, and a process may stand still
LIMIT_S = 60.0

_numbers = itertools.count()


class World:
    """One tree. Stores that are made of it are sessions with it, each of an owner of its own."""

    def make(self, blocking: ThreadBlocking) -> MetadataStore:
        raise AssertionError("each world makes its own stores")

    async def expire(self, store: MetadataStore) -> None:
        """Let the session end as if nothing had been heard of it."""
        raise AssertionError("this world's sessions do not expire")

    def cut(self, store: MetadataStore) -> None:
        """Break the store's connection, keep it broken."""
        raise AssertionError("this world has no connections")

    def heal(self, store: MetadataStore) -> None:
        """Let it connect again."""

    def close(self) -> None:
        """Give up what stores were made of."""

    @asynccontextmanager
    async def store(self) -> AsyncIterator[MetadataStore]:
        """An open store, closed afterwards."""
        blocking = ThreadBlocking(asyncio.get_running_loop())
        store = self.make(blocking)
        try:
            await store.open()
            yield store
        finally:
            await store.close()
            blocking.close()


class MemoryWorld(World):
    def __init__(self) -> None:
        self._tree = MemoryTree()

    def make(self, blocking: ThreadBlocking) -> MemoryStore:
        return MemoryStore(self._tree)

    async def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, MemoryStore)
        store.expire()

    def cut(self, store: MetadataStore) -> None:
        assert isinstance(store, MemoryStore)
        store.suspend()

    def heal(self, store: MetadataStore) -> None:
        assert isinstance(store, MemoryStore)
        store.resume()


class SqliteWorld(World):
    """One session at a time."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "metadata.sqlite")

    def make(self, blocking: ThreadBlocking) -> SqliteStore:
        return SqliteStore(self._path, blocking.submit)


class SharedSqliteWorld(World):
    """Sessions of one process; test_shared_sqlite.py has several."""

    def __init__(self, folder: Path) -> None:
        self._path = str(folder / "metadata.sqlite")

    def make(self, blocking: ThreadBlocking) -> SharedSqliteStore:
        loop = asyncio.get_running_loop()
        owner = f"owner {next(_numbers)}"
        return SharedSqliteStore(loop, OsFileSystem(), self._path, owner, SESSION_TIMEOUT_MS)

    async def expire(self, store: MetadataStore) -> None:
        """Somebody ends it in the file."""
        session_id = store.session_id

        def end() -> None:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=LIMIT_S)
            with sqlite_tree.transaction(connection):
                sqlite_sessions.end(connection, session_id)
            connection.close()

        await asyncio.to_thread(end)


class ZookeeperWorld(World):
    """A chroot of its own on a shared server; each store connects through a proxy of its own."""

    def __init__(self, server: ZookeeperProcess) -> None:
        self._server = server
        self._chroot = f"/contract/{next(_numbers)}"
        self._proxies: dict[ZookeeperStore, TcpProxy] = {}

    def make(self, blocking: ThreadBlocking) -> ZookeeperStore:
        proxy = TcpProxy(self._server.host, self._server.port)
        loop = asyncio.get_running_loop()
        settings = ZookeeperSettings(
            proxy.address,
            self._chroot,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            connection_timeout_ms=int(LIMIT_S * 1000),
        )
        store = ZookeeperStore(loop, SystemClock(loop), settings)
        self._proxies[store] = proxy
        return store

    async def expire(self, store: MetadataStore) -> None:
        """Somebody who knows the session's password closes it."""
        assert isinstance(store, ZookeeperStore)
        assert store._session is not None
        client_id = store._session._client.client_id
        await asyncio.to_thread(close_session, self._server.address, client_id)

    def cut(self, store: MetadataStore) -> None:
        assert isinstance(store, ZookeeperStore)
        self._proxies[store].cut()

    def heal(self, store: MetadataStore) -> None:
        assert isinstance(store, ZookeeperStore)
        self._proxies[store].heal()

    def close(self) -> None:
        for proxy in self._proxies.values():
            proxy.__exit__(None, None, None)


def close_session(address: str, client_id: tuple[int, bytes]) -> None:
    """Connect as the session and end it."""
    client = KazooClient(address, timeout=SESSION_TIMEOUT_MS / 1000, client_id=client_id)
    client.start(LIMIT_S)
    client.stop()
    client.close()


class Heard:
    """What a watcher or a session listener was told, and a way to wait for it."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self._news = asyncio.Event()

    def watcher(self, path: str, event: WatchEvent) -> None:
        self.note((path, event))

    def note(self, event: object) -> None:
        self.events.append(event)
        self._news.set()

    async def equals(self, expected: list[object]) -> None:
        """Return once exactly this was told, in this order."""
        await self.until(lambda events: events == expected, f"{expected} told")

    async def holds(self, expected: list[object]) -> None:
        """Return once this was told, in any order."""
        await self.until(
            lambda events: sorted(map(str, events)) == sorted(map(str, expected)), f"{expected} told"
        )

    async def until(self, condition: Callable[[list[object]], object], what: str) -> None:
        try:
            async with asyncio.timeout(LIMIT_S):
                while not condition(self.events):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"not {what}, but {self.events}") from None


async def eventually(condition: Callable[[], object], what: str) -> None:
    """Return once the condition holds, of which no event tells."""
    try:
        async with asyncio.timeout(LIMIT_S):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}") from None


def run(world: World, story: Callable[..., Awaitable[None]], stores: int = 1) -> None:
    """Run a story that takes so many open stores."""

    async def main(taken: tuple[MetadataStore, ...] = ()) -> None:
        if len(taken) == stores:
            await story(*taken)
            return
        async with world.store() as store:
            await main((*taken, store))

    try:
        asyncio.run(main())
    finally:
        world.close()
