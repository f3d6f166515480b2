"""The metadata tree in memory: for tests, simulations and brokers that keep nothing.

`MemoryTree` is the shared tree (the "server"), `MemoryStore` one session with it, so that tests can look at
one tree through several sessions and end them one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from replication.metadata.notify import Event, Listeners, events_of
from replication.metadata.store import (
    ANY_VERSION,
    NO_SESSION,
    BadVersion,
    Cancel,
    Check,
    ConnectionLost,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    ParentEphemeral,
    Put,
    SessionEvent,
    SessionExpired,
    StoreError,
    Watcher,
    check_path,
    name_of,
    parent_of,
)


class MemoryTree:
    """The nodes, who owns the ephemeral ones, and the sessions to tell of changes."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}
        self.children: dict[str, dict[str, None]] = {"/": {}}
        self.stores: dict[MemoryStore, None] = {}
        self._transaction_id = 0
        self._session_id = NO_SESSION
        self._sequences: dict[str, int] = {}

    def begin_session(self) -> int:
        """The id of a new session."""
        self._session_id += 1
        return self._session_id

    def next_in_sequence(self, parent: str) -> int:
        """A number that no sequential node below `parent` has had."""
        number = self._sequences.get(parent, 0)
        self._sequences[parent] = number + 1
        return number

    def apply(self, operations: Sequence[Operation], session_id: int) -> list[int]:
        """All or nothing: what was done is undone in reverse order when an operation is refused."""
        self._transaction_id += 1
        undo: list[Callable[[], None]] = []
        results: list[int] = []
        try:
            for index, operation in enumerate(operations):
                try:
                    results.append(self._one(operation, session_id, undo))
                except StoreError as error:
                    error.operation_index = index
                    raise
        except StoreError:
            for step in reversed(undo):
                step()
            raise
        return results

    def tell(self, events: Sequence[Event]) -> None:
        for store in list(self.stores):
            store.hear(events)

    def end_session(self, session_id: int) -> None:
        """Remove the ephemeral nodes of a session and tell of it."""
        deletions = [Delete(path) for path, node in self.nodes.items() if node.owner == session_id]
        self.apply(deletions, session_id)
        self.tell(events_of(deletions))

    def _one(self, operation: Operation, session_id: int, undo: list[Callable[[], None]]) -> int:
        check_path(operation.path)
        match operation:
            case Create(path=path, value=value, ephemeral=ephemeral):
                parent = parent_of(path)
                if path in self.nodes:
                    raise NodeExists(path)
                if parent not in self.nodes:
                    raise NoNode(parent, "the parent does not exist")
                if self.nodes[parent].owner != NO_SESSION:
                    raise ParentEphemeral(parent)
                owner = session_id if ephemeral else NO_SESSION
                self._add(path, Node(value, 0, self._transaction_id, owner))
                undo.append(lambda: self._remove(path))
                return 0
            case Put(path=path, value=value, version=version):
                before = self._expect(path, version)
                self.nodes[path] = before._replace(value=value, version=before.version + 1)
                undo.append(lambda: self.nodes.__setitem__(path, before))
                return before.version + 1
            case Delete(path=path, version=version):
                before = self._expect(path, version)
                if self.children[path]:
                    raise NotEmpty(path)
                self._remove(path)
                undo.append(lambda: self._add(path, before))
                return -1
            case Check(path=path, version=version):
                return self._expect(path, version).version

    def _expect(self, path: str, version: int) -> Node:
        node = self.nodes.get(path)
        if node is None:
            raise NoNode(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersion(path, f"has version {node.version}, not {version}")
        return node

    def _add(self, path: str, node: Node) -> None:
        self.nodes[path] = node
        self.children[path] = {}
        self.children[parent_of(path)][name_of(path)] = None

    def _remove(self, path: str) -> None:
        del self.nodes[path], self.children[path], self.children[parent_of(path)][name_of(path)]


class MemoryStore:
    """One session with a MemoryTree. What a network does to a session are methods of their own here:
    `suspend`, `resume`, `expire`.
    """

    def __init__(self, tree: MemoryTree | None = None, session_timeout_ms: int = 18_000) -> None:
        self.tree = tree if tree is not None else MemoryTree()
        self.listeners = Listeners()
        self.session_id = NO_SESSION
        self.session_timeout_ms = session_timeout_ms
        self._missed: list[Event] | None = None
        self._reconnected = asyncio.Event()

    async def open(self) -> None:
        if self.session_id == NO_SESSION:
            self.session_id = self.tree.begin_session()
            self.tree.stores[self] = None
            self._connected()

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        """What `close` does, and a server after the death of a process: the session is over, and nobody on
        this side hears of it.
        """
        self.tree.stores.pop(self, None)
        self._end()

    def expire(self) -> None:
        """What a server does to a session it has not heard of for too long; told at once. Changes from now on
        are told by the next `open`.
        """
        if self.session_id != NO_SESSION:
            self._missed = self._missed or []
            self._end()
            self.listeners.tell_session(SessionEvent.EXPIRED)

    def suspend(self) -> None:
        """What a cut connection does: no calls, and changes are told by `resume` only."""
        self._missed = []
        self._reconnected.clear()
        self.listeners.tell_session(SessionEvent.SUSPENDED)

    def resume(self) -> None:
        """The connection is back before the session was over."""
        self._connected()

    def hear(self, events: Sequence[Event]) -> None:
        """Called by the tree: tell the watchers, or keep it for them."""
        if self._missed is not None:
            self._missed += events
        else:
            self.listeners.tell(events)

    async def connected(self) -> None:
        while True:
            if self.session_id == NO_SESSION:
                raise SessionExpired("/")
            if self._missed is None:
                return
            await self._reconnected.wait()

    def contact_age_ms(self) -> int:
        return 0

    async def get(self, path: str) -> Node | None:
        self._require_session(path)
        return self.tree.nodes.get(path)

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        self._require_session("/")
        return {path: self.tree.nodes[path] for path in paths if path in self.tree.nodes}

    async def children(self, path: str) -> list[str]:
        self._require_session(path)
        if path not in self.tree.children:
            raise NoNode(path)
        return sorted(self.tree.children[path])

    async def subtree(self, path: str) -> dict[str, Node]:
        self._require_session(path)
        prefix = path.rstrip("/") + "/"
        return {
            at: self.tree.nodes[at] for at in sorted(self.tree.nodes) if at.startswith(prefix) and at != "/"
        }

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        await self.multi([Create(path, value, ephemeral)])
        return self.tree.nodes[path].created_id

    async def create_sequential(self, prefix: str, value: bytes) -> str:
        self._require_session(prefix)
        path = f"{prefix}{self.tree.next_in_sequence(parent_of(prefix)):010}"
        await self.multi([Create(path, value)])
        return path

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        return (await self.multi([Put(path, value, version)]))[0]

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        self._require_session(operations[0].path if operations else "/")
        results = self.tree.apply(operations, self.session_id)
        self.tree.tell(events_of(operations))
        return results

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        return self.listeners.watch(path, watcher)

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        return self.listeners.on_session(listener)

    def _connected(self) -> None:
        missed, self._missed = self._missed, None
        self._reconnected.set()
        self.listeners.tell_session(SessionEvent.CONNECTED)
        self.listeners.tell(missed or ())

    def _end(self) -> None:
        session_id, self.session_id = self.session_id, NO_SESSION
        self._reconnected.set()
        if session_id != NO_SESSION:
            self.tree.end_session(session_id)

    def _require_session(self, path: str) -> None:
        if self.session_id == NO_SESSION:
            raise SessionExpired(path)
        if self._missed is not None:
            raise ConnectionLost(path)
