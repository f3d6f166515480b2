"""A simulated metadata server on a host of its own, and the sessions that brokers hold with it over the wire.

A session has one connection: a line in each direction that keeps order, holds what cannot pass, and is given
up by the client when it has heard nothing for two thirds of the session's time-out (SUSPENDED, open calls end
in ConnectionLost, applied or not). It then tries to connect again; the server has kept the session, with what
the watches missed, or has ended it because it heard nothing for the whole time-out (EXPIRED).

The client's side runs on its process' loop: a paused process sends nothing and hears everything later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.notify import Event, Listeners
from replication.metadata.store import (
    ANY_VERSION,
    NO_SESSION,
    Cancel,
    ConnectionLost,
    Node,
    Operation,
    SessionEvent,
    SessionExpired,
    StoreError,
    Watcher,
)
from tests.simulation.loop import HostLoop
from tests.simulation.wire import Kernel, Wire
from tests.simulation.world import MS_US, World

TICK_US = 500 * MS_US  # sessions end at the next one
AGAIN_US = 50 * MS_US  # until something held is tried again
RECONNECT_S = (0.05, 0.3)

Deliver = Callable[[], None]


class MetadataServer:
    """The tree and who has a session with it."""

    def __init__(self, world: World, wire: Wire, tree: MemoryTree, host: str = "metadata") -> None:
        self.world, self.wire, self.tree = world, wire, tree
        self.kernel = wire.kernel(host)
        self.chance = world.chance("metadata server")
        self._sessions: list[ServerSession] = []

    def expire(self, kernel: Kernel) -> None:
        """End the sessions of a host, though it lives: its processes are told when they ask next."""
        for session in self._sessions:
            if session.client.kernel is kernel and session.session_id != NO_SESSION:
                self.world.note(self.kernel.name, f"session {session.session_id} is ended")
                self.world.trace.mark("session expired")
                _outcome(session.close)

    def session(self, client: SimSession, timeout_ms: int) -> ServerSession:
        """A new session for that client."""
        session = ServerSession(self, client, timeout_ms)
        _outcome(session.open)
        self._sessions = [each for each in self._sessions if each.session_id != NO_SESSION]
        self._sessions.append(session)
        self.world.note(self.kernel.name, f"session {session.session_id} of {client.name}")
        return session


class ServerSession(MemoryStore):
    """What the server keeps of a session. `down` is the line to its client; None while not connected."""

    def __init__(self, server: MetadataServer, client: SimSession, timeout_ms: int) -> None:
        super().__init__(server.tree, timeout_ms)
        self.client, self.down = client, Line(server, server.kernel, client.kernel)
        self._server = server
        self._heard_us = server.world.now_us
        self._unheard: dict[int, list[Event]] = {}  # by a number that rises
        self._number = 0
        self._look_later()

    def heard(self) -> None:
        """The client is alive."""
        self._heard_us = self._server.world.now_us

    def _look_later(self) -> None:
        until_us = self._heard_us + self.session_timeout_ms * MS_US
        self._server.world.at(until_us + self._server.chance.randint(0, TICK_US), self._look)

    def _look(self) -> None:
        if self.session_id == NO_SESSION:
            return
        if self._server.world.now_us - self._heard_us < self.session_timeout_ms * MS_US:
            self._look_later()
            return
        self._server.world.note(self._server.kernel.name, f"session {self.session_id} is over")
        self._server.world.trace.mark("session expired")
        _outcome(self.close)

    def hear(self, events: Sequence[Event]) -> None:
        """Called by the tree: the client's watchers are told; it is kept until they are."""
        self._number += 1
        number, told = self._number, list(events)
        self._unheard[number] = told

        def arrives() -> None:
            del self._unheard[number]
            self.client.told(told)

        if self.down.open:
            self.down.send(arrives)

    def connect(self) -> None:
        """The client connects again: it is told what it has missed."""
        missed, self._unheard = self._unheard, {}
        for events in missed.values():
            self.hear(events)


class Line:
    """One direction of a session's connection."""

    def __init__(self, server: MetadataServer, source: Kernel, target: Kernel) -> None:
        self.open = True
        self._server, self._source, self._target = server, source, target
        self._number = 0  # of the connection
        self._last_us = 0
        self._held: deque[tuple[int, Deliver]] = deque()

    def send(self, deliver: Deliver) -> None:
        world = self._server.world
        self._last_us = max(self._last_us + 1, world.now_us + self._server.wire.delay_us())
        world.at(self._last_us, self._arrive, self._number, deliver)

    def give_up(self) -> None:
        """What is under way does not arrive any more."""
        self.open = False
        self._number += 1
        self._held.clear()

    def reopen(self) -> None:
        self.give_up()
        self.open = True

    def _passes(self) -> bool:
        return self._server.wire.passes(self._source, self._target)

    def _arrive(self, number: int, deliver: Deliver) -> None:
        if number != self._number:
            return
        if not self._held and self._passes():
            deliver()
            return
        if not self._held:
            self._server.world.after(AGAIN_US, self._again, number)
        self._held.append((number, deliver))

    def _again(self, number: int) -> None:
        if number != self._number:
            return
        if not self._passes():
            self._server.world.after(AGAIN_US, self._again, number)
            return
        held, self._held = self._held, deque()
        for _, deliver in held:
            deliver()


class SimSession:
    """A process' session. See the module and `replication.metadata.store.MetadataStore`."""

    def __init__(self, server: MetadataServer, kernel: Kernel, loop: HostLoop, timeout_ms: int) -> None:
        self.name, self.kernel = loop.name, kernel
        self.session_timeout_ms = timeout_ms
        self.listeners = Listeners()
        self._server, self._loop = server, loop
        self._chance = server.world.chance(f"session of {loop.name}")
        self._session: ServerSession | None = None
        self._up = Line(server, kernel, server.kernel)
        self._open_calls: dict[asyncio.Future[Any], str] = {}
        self._suspended = False
        self._contact_s = 0.0
        self._reconnected: asyncio.Event = asyncio.Event()

    @property
    def session_id(self) -> int:
        return self._id if self._session is not None else NO_SESSION

    async def open(self) -> None:
        if self._session is not None:
            return
        until = self._loop.time() + self.session_timeout_ms / 1000
        while not await self._handshake(None):
            if self._loop.time() > until:
                raise ConnectionLost("/")
        self._beat()

    async def _handshake(self, session: ServerSession | None) -> bool:
        """Connect, for a new session or an earlier one; False if it is to be tried again.

        Told of the new connection, or of the session's end, is the loop by the answer.
        """
        server, loop = self._server, self._loop
        answered: asyncio.Future[bool] = loop.create_future()

        def arrives() -> None:
            if not server.wire.passes(self.kernel, server.kernel):
                return
            found = session
            if found is None:  # if the answer is lost, nobody knows of it, and it ends by itself
                found = server.session(self, self.session_timeout_ms)
            if found.session_id == NO_SESSION:
                server.world.after(server.wire.delay_us(), over)
                return
            found.heard()
            found.down.reopen()
            found.down.send(lambda: loop.call_soon(connected, found))
            found.connect()

        def over() -> None:
            if server.wire.passes(server.kernel, self.kernel):
                loop.call_soon(expired)

        def expired() -> None:
            if not answered.done():
                answered.set_result(True)
                self._expired()

        def connected(found: ServerSession) -> None:
            if answered.done():
                return
            answered.set_result(True)
            self._session, self._id = found, found.session_id
            self._suspended = False
            self._contact_s = loop.time()
            self._up.reopen()
            self._reconnected.set()
            self.listeners.tell_session(SessionEvent.CONNECTED)

        server.world.after(server.wire.delay_us(), arrives)
        low, high = RECONNECT_S
        try:
            async with asyncio.timeout(low + (high - low) * self._chance.random()):
                return await answered
        except TimeoutError:
            return answered.done() and not answered.cancelled()  # it came in the same moment

    def _beat(self) -> None:
        """Three times in a time-out: say that we live, and look whether we were heard."""
        session = self._session
        if session is None or self._suspended:
            return
        sent_s = self._loop.time()
        if (sent_s - self._contact_s) * 3000 > 2 * self.session_timeout_ms:
            self._suspend(session)
            return
        self._ask(session, lambda: None, lambda outcome: self._heard(session, sent_s, outcome))
        self._loop.call_later(self.session_timeout_ms / 6000, self._beat)

    def _heard(self, session: ServerSession, sent_s: float, outcome: Any) -> None:
        if isinstance(outcome, SessionExpired):
            if self._session is session:
                self._expired()
        else:
            self._contact_s = max(self._contact_s, sent_s)

    def _suspend(self, session: ServerSession) -> None:
        self._suspended = True
        self._reconnected.clear()
        self._up.give_up()
        session.down.give_up()
        self._server.world.note(self.name, "session suspended")
        self._end_calls(ConnectionLost)
        self.listeners.tell_session(SessionEvent.SUSPENDED)
        self._loop.create_task(self._reconnect(session), name="metadata session")

    async def _reconnect(self, session: ServerSession) -> None:
        while not await self._handshake(session):
            continue
        self._beat()

    def _expired(self) -> None:
        self._server.world.note(self.name, "session expired")
        self._session = None
        self._suspended = False
        self._reconnected.set()
        self._end_calls(SessionExpired)
        self.listeners.tell_session(SessionEvent.EXPIRED)

    def _end_calls(self, error: type[StoreError]) -> None:
        calls, self._open_calls = self._open_calls, {}
        for call, path in calls.items():
            if not call.done():
                call.set_exception(error(path))

    async def close(self) -> None:
        session = self._session
        if session is not None and not self._suspended:
            await self._call("/", session.close)
        self._session = None
        self._up.give_up()

    async def connected(self) -> None:
        while True:
            if self._session is None:
                raise SessionExpired("/")
            if not self._suspended:
                return
            await self._reconnected.wait()

    def contact_age_ms(self) -> int:
        return int((self._loop.time() - self._contact_s) * 1000)

    def told(self, events: Sequence[Event]) -> None:
        """Called by the line from the server."""
        self._loop.call_soon(self._tell, list(events))

    def _tell(self, events: Sequence[Event]) -> None:
        if self._session is not None:
            self.listeners.tell(events)

    # -- calls

    def _ask(self, session: ServerSession, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Have the server do it; `done` is called on our loop with what came of it."""

        def at_server() -> None:
            if session.session_id == NO_SESSION:
                outcome: Any = SessionExpired("/")
            else:
                session.heard()
                outcome = work()
            session.down.send(lambda: self._loop.call_soon(done, outcome))

        self._up.send(at_server)

    async def _call(self, path: str, method: Callable[..., Any], *args: Any) -> Any:
        session = self._session
        if session is None:
            raise SessionExpired(path)
        if self._suspended:
            raise ConnectionLost(path)
        call: asyncio.Future[Any] = self._loop.create_future()
        self._open_calls[call] = path
        sent_s = self._loop.time()

        def done(outcome: Any) -> None:
            self._open_calls.pop(call, None)
            if not call.done():
                if isinstance(outcome, StoreError):
                    call.set_exception(outcome)
                else:
                    call.set_result(outcome)
            self._heard(session, sent_s, outcome)

        self._ask(session, lambda: self._apply(method, args), done)
        return await call

    def _apply(self, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        outcome = _outcome(method, *args)
        how = type(outcome).__name__ if isinstance(outcome, StoreError) else "done"
        self._server.world.note(self._server.kernel.name, f"{self.name} {method.__name__} {how}")
        return outcome

    async def get(self, path: str) -> Node | None:
        found: Node | None = await self._call(path, self._method("get"), path)
        return found

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        found: dict[str, Node] = await self._call("/", self._method("get_many"), paths)
        return found

    async def children(self, path: str) -> list[str]:
        found: list[str] = await self._call(path, self._method("children"), path)
        return found

    async def subtree(self, path: str) -> dict[str, Node]:
        found: dict[str, Node] = await self._call(path, self._method("subtree"), path)
        return found

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        created: int = await self._call(path, self._method("create"), path, value, ephemeral)
        return created

    async def create_sequential(self, prefix: str, value: bytes) -> str:
        path: str = await self._call(prefix, self._method("create_sequential"), prefix, value)
        return path

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        put: int = await self._call(path, self._method("put"), path, value, version)
        return put

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self._call(path, self._method("delete"), path, version)

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        path = operations[0].path if operations else "/"
        versions: list[int] = await self._call(path, self._method("multi"), operations)
        return versions

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        return self.listeners.watch(path, watcher)

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        return self.listeners.on_session(listener)

    def _method(self, name: str) -> Callable[..., Any]:
        if self._session is None:
            raise SessionExpired("/")
        method: Callable[..., Any] = getattr(self._session, name)
        return method


def _outcome(method: Callable[..., Any], *args: Any) -> Any:
    """What a call of the store in memory gives: it waits for nothing."""
    try:
        method(*args).send(None)
    except StopIteration as done:
        return done.value
    except StoreError as refused:
        return refused
    raise AssertionError("the store in memory waits for nothing")
