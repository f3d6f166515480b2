"""The metadata tree in ZooKeeper: the store of a cluster, and the one that brokers of Apache Kafka share.

Owns one `ZookeeperSession` after another: when one expires, the watches stay and the next `open` begins a new
one. Whatever a call raises is a refusal by the server or the loss of the connection; nothing is retried here,
because only the caller knows whether doing it twice does harm (`retried` in retry.py).

The tree lies below the chroot of `zookeeper.connect`. Kazoo is not told of it: paths get it as a prefix here,
so that the same session can create it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL

from replication.metadata.notify import Listeners
from replication.metadata.store import (
    ANY_VERSION,
    NO_SESSION,
    Cancel,
    ConnectionLost,
    Create,
    Node,
    NodeExists,
    NoNode,
    Operation,
    SessionEvent,
    SessionExpired,
    Watcher,
    check_path,
    parent_of,
)
from replication.metadata.zookeeper_acls import acl_of
from replication.metadata.zookeeper_errors import translate, translate_operation
from replication.metadata.zookeeper_multi import add_operations, versions_after
from replication.metadata.zookeeper_session import StartCall, ZookeeperSession
from replication.metadata.zookeeper_settings import ZookeeperSettings
from replication.metadata.zookeeper_watches import Watches
from runtime.clock import Clock
from runtime.last_will import LastWill

log = logging.getLogger("ottla.zookeeper")

READ_AT_ONCE = 200

ZOOKEEPERS_OWN = "zookeeper"
"""A node of the server's that lies below its root and is no part of any tree."""


class ZookeeperStore:
    """See the module."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        settings: ZookeeperSettings,
        will: LastWill | None = None,
    ) -> None:
        """`will`: has the session ended at once if this process is killed (zookeeper_farewell)."""
        self._will = will
        self._loop = loop
        self._clock = clock
        self._settings = settings
        self._listeners = Listeners()
        self._watches = Watches(self._listeners, self._full_path)
        self._session: ZookeeperSession | None = None
        self._session_timeout_ms = settings.session_timeout_ms
        self._last_contact = clock.monotonic()
        self._reconnected = asyncio.Event()
        self._opening = asyncio.Lock()

    @property
    def session_id(self) -> int:
        return NO_SESSION if self._session is None else self._session.session_id

    @property
    def session_timeout_ms(self) -> int:
        return self._session_timeout_ms

    async def open(self) -> None:
        async with self._opening:
            if self._session is None:
                await self._begin()

    async def _begin(self) -> None:
        session = ZookeeperSession(
            self._loop, self._clock, self._settings, self._state_changed, self._watches.fired
        )
        await session.start()
        self._session = session
        try:
            await self._ensure_chroot()
        except BaseException:
            self._session = None
            await session.stop()
            raise
        if self._will is not None:
            self._will.write(session.farewell())
        self._connected(session)

    async def close(self) -> None:
        session, self._session = self._session, None
        self._reconnected.set()
        if session is not None:
            self._last_contact = session.last_contact
            await session.stop()
        if self._will is not None:
            await self._will.revoke()

    async def connected(self) -> None:
        while True:
            if self._session is None:
                raise SessionExpired("/", "the store is not open")
            if self._session.is_connected:
                return
            await self._reconnected.wait()

    def contact_age_ms(self) -> int:
        last = self._last_contact if self._session is None else self._session.last_contact
        return int((self._clock.monotonic() - last) * 1000)

    async def get(self, path: str) -> Node | None:
        full = self._full_path(path)
        try:
            return _node(await self._call(path, lambda client: client.get_async(full)))
        except NoNode:
            return None

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        read = await self._all(paths, lambda client, full: client.get_async(full))
        return {path: _node(answer) for path, answer in read.items()}

    async def children(self, path: str) -> list[str]:
        full = self._full_path(path)
        names = await self._call(path, lambda client: client.get_children_async(full))
        return _ours(full, names)

    async def subtree(self, path: str) -> dict[str, Node]:
        """Read level by level, so it is not as of one moment; what vanishes meanwhile is left out."""
        nodes: dict[str, Node] = {}
        level = [path]
        while level:
            listed = await self._all(level, lambda client, full: client.get_children_async(full))
            found = [
                f"{parent.rstrip('/')}/{name}"
                for parent, names in listed.items()
                for name in _ours(self._full_path(parent), names)
            ]
            read = await self._all(found, lambda client, full: client.get_async(full))
            nodes.update((at, _node(answer)) for at, answer in read.items())
            level = [at for at, (_, stat) in read.items() if stat.numChildren]
        return dict(sorted(nodes.items()))

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        full, acl = self._full_path(path), acl_of(path, self._settings.secure)
        _, stat = await self._call(
            Create(path, value, ephemeral),
            lambda client: client.create_async(full, value, acl, ephemeral=ephemeral, include_data=True),
        )
        return int(stat.czxid)

    async def create_sequential(self, prefix: str, value: bytes) -> str:
        full, acl = self._full_path(prefix + "0")[:-1], acl_of(prefix, self._settings.secure)
        created = await self._call(
            Create(prefix, value), lambda client: client.create_async(full, value, acl, sequence=True)
        )
        return f"{prefix}{created[len(full) :]}"

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        full = self._full_path(path)
        stat = await self._call(path, lambda client: client.set_async(full, value, version))
        return int(stat.version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        full = self._full_path(path)
        await self._call(path, lambda client: client.delete_async(full, version))

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        if not operations:
            self._open_session("/")
            return []
        full_paths = {operation.path: self._full_path(operation.path) for operation in operations}

        def start(client: KazooClient) -> Any:
            transaction = client.transaction()
            secure = self._settings.secure
            add_operations(transaction, operations, full_paths.__getitem__, lambda at: acl_of(at, secure))
            return transaction.commit_async()

        return versions_after(operations, await self._call(operations[0].path, start))

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        self._full_path(path)
        stop_telling = self._listeners.watch(path, watcher)
        self._watches.add(path)

        def cancel() -> None:
            stop_telling()
            if not self._listeners.is_watched(path):
                self._watches.drop(path)

        return cancel

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        return self._listeners.on_session(listener)

    async def _ensure_chroot(self) -> None:
        missing: list[str] = []
        at = self._settings.chroot
        while at and await self._call("/", _exists(at)) is None:
            missing.append(at)
            at = "" if parent_of(at) == "/" else parent_of(at)
        for full in reversed(missing):
            try:
                await self._call("/", _create_empty(full, acl_of("/", self._settings.secure)))
            except NodeExists:
                continue

    async def _call(self, about: str | Operation, start: StartCall) -> Any:
        path = about if isinstance(about, str) else about.path
        try:
            return await self._open_session(path).call(start)
        except KazooException as error:
            if isinstance(about, str):
                raise translate(error, path) from error
            raise translate_operation(error, about) from error

    async def _all(self, paths: Sequence[str], start: Callable[[KazooClient, str], Any]) -> dict[str, Any]:
        """The answers for those paths that exist; so many calls at a time are in the queue that it never
        runs dry, and that the loop is not held by one who reads the nodes of ten thousand partitions.
        """
        session = self._open_session("/")
        found: dict[str, Any] = {}
        for first in range(0, len(paths), READ_AT_ONCE):
            some = paths[first : first + READ_AT_ONCE]
            asked = [session.call(partial(_with_path, start, self._full_path(path))) for path in some]
            answers = await asyncio.gather(*asked, return_exceptions=True)
            for path, answer in zip(some, answers, strict=True):
                if isinstance(answer, NoNodeError):
                    continue
                if isinstance(answer, BaseException):
                    raise translate(answer, path) from answer
                found[path] = answer
        return found

    def _state_changed(self, event: SessionEvent) -> None:
        """Of the session that is open."""
        session = self._session
        if session is None:
            return
        if event == SessionEvent.CONNECTED:
            self._connected(session)
            return
        if event == SessionEvent.EXPIRED:
            self._last_contact = session.last_contact
            self._session = None
            self._reconnected.set()
        else:
            self._reconnected.clear()
        self._listeners.tell_session(event)

    def _connected(self, session: ZookeeperSession) -> None:
        granted_ms = session.session_timeout_ms
        if granted_ms != self._session_timeout_ms:
            log.warning(
                "ZooKeeper grants a session time-out of %d ms where %d are asked for "
                "(zookeeper.session.timeout.ms). Its bounds are minSessionTimeout and maxSessionTimeout, "
                "2 and 20 times its tickTime",
                granted_ms,
                self._settings.session_timeout_ms,
            )
            self._session_timeout_ms = granted_ms
        self._watches.connected(session)
        self._reconnected.set()
        self._listeners.tell_session(SessionEvent.CONNECTED)

    def _open_session(self, path: str) -> ZookeeperSession:
        if self._session is None:
            raise SessionExpired(path, "the store is not open")
        if not self._session.is_connected:
            raise ConnectionLost(path)
        return self._session

    def _full_path(self, path: str) -> str:
        """The path on the server. Raises ValueError for what is none."""
        check_path(path)
        return self._settings.chroot + path if path != "/" else self._settings.chroot or "/"


def _node(answer: tuple[bytes | None, ZnodeStat]) -> Node:
    value, stat = answer
    return Node(value or b"", stat.version, stat.czxid, stat.ephemeralOwner)


def _ours(full_path: str, names: list[str]) -> list[str]:
    return sorted(name for name in names if full_path != "/" or name != ZOOKEEPERS_OWN)


def _exists(full_path: str) -> StartCall:
    return lambda client: client.exists_async(full_path)


def _create_empty(full_path: str, acl: list[ACL]) -> StartCall:
    return lambda client: client.create_async(full_path, b"", acl)


def _with_path(start: Callable[[KazooClient, str], Any], full_path: str, client: KazooClient) -> Any:
    return start(client, full_path)
