"""A simulated process' session with the tree of metadata.

Each call is a job that waits its turn, takes a drawn time, and is applied at one moment of it: a process that
dies meanwhile may have changed the tree without knowing. What was applied is durable. Watchers are called on
the process' loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.store import (
    ANY_VERSION,
    Cancel,
    Node,
    Operation,
    SessionEvent,
    StoreError,
    Watcher,
)
from tests.simulation.loop import HostLoop
from tests.simulation.wire import Kernel
from tests.simulation.world import MS_US, World

_T = TypeVar("_T")
CALL_US = (50, 4 * MS_US)


class LocalStores:
    """The stores of a broker that is alone, one for each of its lives."""

    def __init__(self, world: World, tree: MemoryTree) -> None:
        self._world, self._tree = world, tree
        self._session: MemoryStore | None = None

    def make(self, kernel: Kernel, loop: HostLoop) -> SimStore:
        """The store of a new life, which ends the session of the one before, as that in a file does."""
        if self._session is not None:
            self._session.end()
        store = SimStore(self._world, loop, self._tree)
        self._session = store.session
        return store


class SimStore:
    """See the module and `replication.metadata.store.MetadataStore`."""

    def __init__(self, world: World, loop: HostLoop, tree: MemoryTree) -> None:
        self.session = MemoryStore(tree)
        self._world, self._loop = world, loop
        self._chance = world.chance(f"store of {loop.name}")
        self._turn: asyncio.Lock = asyncio.Lock()

    async def open(self) -> None:
        await self._call(self.session.open)

    async def close(self) -> None:
        await self._call(self.session.close)

    @property
    def session_id(self) -> int:
        return self.session.session_id

    @property
    def session_timeout_ms(self) -> int:
        return self.session.session_timeout_ms

    async def connected(self) -> None:
        await self.session.connected()

    def contact_age_ms(self) -> int:
        return self.session.contact_age_ms()

    async def get(self, path: str) -> Node | None:
        return await self._call(self.session.get, path)

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        return await self._call(self.session.get_many, paths)

    async def children(self, path: str) -> list[str]:
        return await self._call(self.session.children, path)

    async def subtree(self, path: str) -> dict[str, Node]:
        return await self._call(self.session.subtree, path)

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        return await self._call(self.session.create, path, value, ephemeral)

    async def create_sequential(self, prefix: str, value: bytes) -> str:
        return await self._call(self.session.create_sequential, prefix, value)

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        return await self._call(self.session.put, path, value, version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._call(self.session.delete, path, version)

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        return await self._call(self.session.multi, operations)

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        return self.session.watch(path, lambda at, event: self._tell(watcher, at, event))

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        return self.session.on_session(lambda event: self._tell(listener, event))

    def _tell(self, callback: Callable[..., None], *args: Any) -> None:
        self._loop.call_soon(callback, *args)

    async def _call(self, work: Callable[..., Coroutine[Any, Any, _T]], *args: Any) -> _T:
        async with self._turn:
            outcome: asyncio.Future[_T] = self._loop.create_future()
            self._world.after(self._chance.randint(*CALL_US), self._apply, work, args, outcome)
            return await outcome

    def _apply(
        self,
        work: Callable[..., Coroutine[Any, Any, Any]],
        args: tuple[Any, ...],
        outcome: asyncio.Future[Any],
    ) -> None:
        loop = self._loop
        if loop.dead:
            return
        if loop.paused:
            self._world.after(CALL_US[1], self._apply, work, args, outcome)
            return
        name = work.__name__
        try:
            work(*args).send(None)
        except StopIteration as done:
            value, error = done.value, None
        except StoreError as refused:
            value, error = None, refused
        else:
            raise AssertionError("the store in memory waits for nothing")
        self._world.note(loop.name, f"store {name} {type(error).__name__ if error else 'done'}")
        self._world.after(self._chance.randint(*CALL_US), loop.call_soon, _end, outcome, value, error)


def _end(outcome: asyncio.Future[Any], value: Any, error: StoreError | None) -> None:
    if not outcome.done():
        if error is None:
            outcome.set_result(value)
        else:
            outcome.set_exception(error)
