"""The metadata tree in memory: for tests, simulations and brokers that keep nothing.

`MemoryTree` is the shared tree (the "server"), `MemoryStore` one session with it, so that tests can look at
one tree through several sessions and end them one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replication.metadata.notify import Event, Listeners, events_of
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
    name_of,
    parent_of,
)


class MemoryTree:
    """The nodes, who owns the ephemeral ones, and the sessions to tell of changes."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}
        self.children: dict[str, dict[str, None]] = {"/": {}}
        self.owners: dict[str, MemoryStore] = {}
        self.sessions: dict[MemoryStore, None] = {}
        self._transaction_id = 0

    def apply(self, operations: Sequence[Operation], owner: MemoryStore) -> list[int]:
        """All or nothing: what was done is undone in reverse order when an operation is refused."""
        self._transaction_id += 1
        undo: list[Callable[[], None]] = []
        results: list[int] = []
        try:
            for index, operation in enumerate(operations):
                try:
                    results.append(self._one(operation, owner, undo))
                except StoreError as error:
                    error.operation_index = index
                    raise
        except StoreError:
            for step in reversed(undo):
                step()
            raise
        return results

    def tell(self, events: Sequence[Event]) -> None:
        for session in list(self.sessions):
            session.listeners.tell(events)

    def end_session(self, session: MemoryStore) -> None:
        """Remove the session and its ephemeral nodes, deepest first, and tell the others."""
        self.sessions.pop(session, None)
        owned = sorted((path for path, owner in self.owners.items() if owner is session), reverse=True)
        deletions = [Delete(path) for path in owned]
        self.apply(deletions, session)
        self.tell(events_of(deletions))

    def _one(self, operation: Operation, owner: MemoryStore, undo: list[Callable[[], None]]) -> int:
        check_path(operation.path)
        match operation:
            case Create(path=path, value=value, ephemeral=ephemeral):
                parent = parent_of(path)
                if path in self.nodes:
                    raise NodeExists(path)
                if parent not in self.nodes:
                    raise NoNode(parent, "the parent does not exist")
                self._add(path, Node(value, 0, self._transaction_id), owner if ephemeral else None)
                undo.append(lambda: self._remove(path))
                return 0
            case Put(path=path, value=value, version=version):
                before = self._expect(path, version)
                self.nodes[path] = Node(value, before.version + 1, before.created_id)
                undo.append(lambda: self.nodes.__setitem__(path, before))
                return before.version + 1
            case Delete(path=path, version=version):
                before = self._expect(path, version)
                if self.children[path]:
                    raise NotEmpty(path)
                held_by = self.owners.get(path)
                self._remove(path)
                undo.append(lambda: self._add(path, before, held_by))
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

    def _add(self, path: str, node: Node, owner: MemoryStore | None) -> None:
        self.nodes[path] = node
        self.children[path] = {}
        self.children[parent_of(path)][name_of(path)] = None
        if owner is not None:
            self.owners[path] = owner

    def _remove(self, path: str) -> None:
        del self.nodes[path], self.children[path], self.children[parent_of(path)][name_of(path)]
        self.owners.pop(path, None)


class MemoryStore:
    """One session with a MemoryTree."""

    def __init__(self, tree: MemoryTree | None = None) -> None:
        self.tree = tree if tree is not None else MemoryTree()
        self.listeners = Listeners()

    async def open(self) -> None:
        self.tree.sessions[self] = None
        self.listeners.tell_session(SessionEvent.CONNECTED)

    async def close(self) -> None:
        if self in self.tree.sessions:
            self.tree.end_session(self)

    def expire(self) -> None:
        """What a server does to a session it has not heard of for too long."""
        if self in self.tree.sessions:
            self.tree.end_session(self)
            self.listeners.tell_session(SessionEvent.EXPIRED)

    async def get(self, path: str) -> Node | None:
        self._require_session(path)
        return self.tree.nodes.get(path)

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

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        return (await self.multi([Put(path, value, version)]))[0]

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        self._require_session(operations[0].path if operations else "/")
        results = self.tree.apply(operations, self)
        self.tree.tell(events_of(operations))
        return results

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        return self.listeners.watch(path, watcher)

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        return self.listeners.on_session(listener)

    def _require_session(self, path: str) -> None:
        if self not in self.tree.sessions:
            raise SessionExpired(path)
