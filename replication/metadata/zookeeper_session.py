"""One session with ZooKeeper: the only place where kazoo's threads and the event loop meet.

kazoo runs three threads: one talks to the server and tells of states, one calls back for finished calls, one
for fired watches. All that they do here is `call_soon_threadsafe`; state lives on the loop.

- Calls leave in the order in which they were made and end in that order, `max_in_flight` at a time.
- A call made while there is no connection fails at once and is never sent: kazoo alone would keep it and
  send it after the reconnect, long after its caller has taken it for lost.
- When the server says that the session is over, kazoo would open another one by itself. This object is then
  at its end: it stops kazoo, and whoever wants a new session makes a new object.
- A server that takes a connection and says nothing (one that starts does so at times) costs half a session:
  kazoo, like Apache Kafka's client, waits for the whole time-out and so loses the session.
- Connected means also that kazoo pings. Besides, the session asks for the root at a quarter of the time-out,
  because kazoo does not tell of its pings, and `last_contact` is needed: the moment at which the last
  answered call was sent, from which on the server counts. One such question is out at a time: requests
  count as pings, and a stream of them would keep kazoo from noticing that nothing comes back.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, KazooException, SessionExpiredError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import Connect
from kazoo.protocol.states import EventType, KazooState, WatchedEvent
from kazoo.retry import KazooRetry

from replication.metadata.store import ConnectionLost, SessionEvent, StoreFailed
from replication.metadata.zookeeper_errors import came_from_server
from replication.metadata.zookeeper_settings import ZookeeperSettings
from runtime.client_tls import ClientTls
from runtime.clock import Clock
from runtime.zookeeper_farewell import farewell

log = logging.getLogger("ottla.zookeeper")

CLOSE_TIMEOUT_S = 2.0
RETRY_DELAY_S = 0.05
RETRY_DELAY_MAX_S = 1.0

StartCall = Callable[[KazooClient], Any]
"""Begins a call of kazoo's and returns its result object."""


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's own makes an epoll object for each wait; with poll a call costs 66 us of CPU instead of 115.

    What TLS has decrypted already shows at no socket: kazoo would wait for more while an answer is there. And
    kazoo would trust the system's certificates besides those that are named.
    """

    def __init__(self, tls: ClientTls | None) -> None:
        super().__init__()
        self._tls = tls

    def create_connection(self, address: Any, hostname: str, timeout: float, **_: Any) -> Any:
        plain = super().create_connection(address, timeout=timeout)
        if self._tls is None:
            return plain
        try:
            return self._tls.context().wrap_socket(plain, server_hostname=hostname)
        except BaseException:
            plain.close()
            raise

    def select(self, reading: Any, writing: Any, _: Any, timeout: float | None = None) -> Any:
        decrypted = [end for end in reading if hasattr(end, "pending") and end.pending()]
        if decrypted:
            return decrypted, [], []
        poll = select.poll()
        ends = {}
        for wanted, flag in ((reading, select.POLLIN), (writing, select.POLLOUT)):
            for end in wanted:
                ends[end.fileno()] = end
                poll.register(end, flag)
        ready = [ends[number] for number, _ in poll.poll(None if timeout is None else timeout * 1000)]
        return [end for end in ready if end in reading], [end for end in ready if end in writing], []


class ZookeeperSession:
    """See the module. `on_state` hears SUSPENDED, CONNECTED (again) and EXPIRED after `start`; `on_watch` the
    type and the full path of each watch that fired. `session_timeout_ms` is what the server has granted.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        settings: ZookeeperSettings,
        on_state: Callable[[SessionEvent], None],
        on_watch: Callable[[str, str], None],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._settings = settings
        self._on_state = on_state
        self._on_watch = on_watch
        self.session_timeout_ms = settings.session_timeout_ms
        self._client = self._make_client()
        self._started: asyncio.Future[None] = loop.create_future()
        self._waiting: deque[tuple[StartCall, asyncio.Future[Any]]] = deque()
        self._in_flight: dict[asyncio.Future[Any], None] = {}
        self._over = False
        self._beat: asyncio.TimerHandle | None = None
        self.is_connected = False
        self.session_id = 0
        self.last_contact = clock.monotonic()

    async def start(self) -> None:
        """Connect. Raises ConnectionLost after the connection time-out, StoreFailed; it is over then."""
        self._client.start_async()
        limit_ms = self._settings.connection_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._started
        except TimeoutError:
            raise ConnectionLost(
                "/", f"no ZooKeeper at {self._settings.hosts} within {limit_ms} ms"
            ) from None
        finally:
            if not self.is_connected:
                self._end(ConnectionLoss())
        self._beat_later()

    async def stop(self) -> None:
        """End the session on the server, if it is reached within a moment, and kazoo's threads."""
        ended = self._end(SessionExpiredError())
        if ended is not None:
            await asyncio.wait([ended], timeout=CLOSE_TIMEOUT_S)

    def farewell(self) -> str:
        """What ends this session in place of a process that was killed."""
        session_id, password = self._client.client_id
        return farewell(self._settings.hosts, session_id, password, self.session_timeout_ms)

    def call(self, start: StartCall) -> asyncio.Future[Any]:
        """Make a call as soon as it is its turn. The future raises kazoo's exceptions."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self.is_connected:
            future.set_exception(SessionExpiredError() if self._over else ConnectionLoss())
        elif len(self._in_flight) < self._settings.max_in_flight and not self._waiting:
            self._send(start, future)
        else:
            self._waiting.append((start, future))
        return future

    def watch_fired(self, event: WatchedEvent) -> None:
        """Given to kazoo as watcher; called on its thread. At a lost connection it calls all with NONE."""
        if event.type != EventType.NONE:
            self._post(self._on_watch, event.type, event.path)

    def _make_client(self) -> KazooClient:
        settings = self._settings
        client = KazooClient(
            hosts=settings.hosts,
            timeout=settings.session_timeout_ms / 1000,
            handler=_Handler(settings.tls),
            use_ssl=settings.tls is not None,  # for its log; the handler connects
            auth_data=[("digest", settings.digest)] if settings.digest is not None else None,
            connection_retry=KazooRetry(
                max_tries=-1,
                delay=RETRY_DELAY_S,
                max_delay=min(RETRY_DELAY_MAX_S, settings.session_timeout_ms / 8000),
            ),
            logger=logging.getLogger("ottla.zookeeper.kazoo"),
        )
        client.add_listener(lambda state: self._post(self._state_changed, state))
        self._join_handshakes(client)
        return client

    def _join_handshakes(self, client: KazooClient) -> None:
        """Bound those that renew a session; hear of its time-out, which the server grants between bounds of
        its own, and kazoo keeps to itself.
        """
        connection = client._connection
        invoke = connection._invoke

        def joining(timeout: float, request: Any, xid: int | None = None) -> Any:
            if isinstance(request, Connect) and request.session_id:
                timeout = min(timeout, self.session_timeout_ms / 2000)
            answer = invoke(timeout, request, xid)
            if isinstance(request, Connect) and answer[0].time_out > 0:
                self.session_timeout_ms = answer[0].time_out  # before kazoo's thread tells of the session
            return answer

        connection._invoke = joining

    def _post(self, function: Callable[..., None], *args: Any) -> None:
        """From any thread to the loop; what comes after its end is of no use to anybody."""
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            log.debug("The event loop is closed; nobody hears of %s", args)

    def _send(self, start: StartCall, future: asyncio.Future[Any]) -> None:
        if not self._client.connected:  # kazoo knows before the loop does
            future.set_exception(ConnectionLoss())
            return
        self._in_flight[future] = None
        sent = self._clock.monotonic()
        start(self._client).rawlink(
            lambda result: self._post(self._answered, future, sent, result.value, result.exception)
        )

    def _answered(
        self, future: asyncio.Future[Any], sent: float, value: Any, error: Exception | None
    ) -> None:
        self._in_flight.pop(future, None)
        if came_from_server(error):
            self.last_contact = max(self.last_contact, sent)
        if not future.done():
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)
        while self._waiting and len(self._in_flight) < self._settings.max_in_flight:
            start, waiting = self._waiting.popleft()
            if not waiting.cancelled():
                self._send(start, waiting)

    def _state_changed(self, state: str) -> None:
        if self._over:
            return
        if state == KazooState.CONNECTED:
            self.is_connected = True
            if not self._started.done():
                self.session_id = self._client.client_id[0]
                self._started.set_result(None)
                return
            self._on_state(SessionEvent.CONNECTED)
            if self._beat is not None:
                self._beat.cancel()
                self._ask_for_contact()
        elif state == KazooState.SUSPENDED:
            self.is_connected = False
            self._fail([*self._in_flight, *self._unsent()], ConnectionLoss())
            self._on_state(SessionEvent.SUSPENDED)
        elif not self._started.done():
            self._started.set_exception(StoreFailed("/", "ZooKeeper refuses the session"))
        else:
            self._end(SessionExpiredError())
            self._on_state(SessionEvent.EXPIRED)

    def _unsent(self) -> list[asyncio.Future[Any]]:
        unsent = [future for _, future in self._waiting]
        self._waiting.clear()
        return unsent

    def _fail(self, futures: list[asyncio.Future[Any]], error: Exception) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(error)

    def _end(self, error: KazooException) -> asyncio.Future[None] | None:
        """No more of this session; the future ends when kazoo has stopped. None: that was begun before."""
        if self._over:
            return None
        self._over = True
        self.is_connected = False
        if self._beat is not None:
            self._beat.cancel()
        self._fail([*self._in_flight, *self._unsent()], error)
        ended: asyncio.Future[None] = self._loop.create_future()
        self._client.handler.spawn(self._stop_client, partial(self._post, _settle, ended))
        return ended

    def _stop_client(self, done: Callable[[], None]) -> None:
        """On a thread of its own, a daemon: it may wait for a server that does not answer."""
        try:
            self._client.stop()
            self._client.close()
        except KazooException as error:
            log.warning("The session with ZooKeeper was not closed: %s", error)
        finally:
            done()

    def _beat_later(self) -> None:
        delay_s = self.session_timeout_ms / 4000
        self._beat = self._loop.call_later(delay_s, self._ask_for_contact)

    def _ask_for_contact(self) -> None:
        self._beat = None
        if not self.is_connected:
            self._beat_later()
            return
        asked = self.call(lambda client: client.exists_async("/"))
        asked.add_done_callback(self._contact_asked)

    def _contact_asked(self, asked: asyncio.Future[Any]) -> None:
        asked.exception()  # whatever it is, the next question will show
        if not self._over:
            self._beat_later()


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
