"""A TCP proxy of a test: what passes between a client and a server can be cut and let through again.

Runs on a thread of its own, so that it works for tests with and without an event loop.
"""

from __future__ import annotations

import contextlib
import queue
import selectors
import socket
import threading
from types import TracebackType

CHUNK_BYTES = 1 << 16
ORDER_TIMEOUT_S = 60.0
PASS, CUT, FREEZE, FREEZE_ANSWERS, CLOSE = "pass", "cut", "freeze", "freeze answers", "close"


class TcpProxy:
    """Listens on a free port of 127.0.0.1 and passes everything on to one address.

    `cut` closes all connections and refuses new ones (they are accepted and closed at once); `freeze` keeps
    the connections and passes nothing on, as a network does that loses packets, `freeze_answers` nothing to
    the client, `freeze_after` comes when so many more bytes went to the server; `heal` ends all of it.
    `accepted` counts connections.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listener.getsockname()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._peers: dict[socket.socket, socket.socket] = {}
        self._servers: dict[socket.socket, None] = {}
        self._orders: queue.SimpleQueue[tuple[str, threading.Event]] = queue.SimpleQueue()
        self._mode = PASS
        self.accepted = 0
        self._until_frozen: int | None = None  # bytes
        self._thread = threading.Thread(target=self._run, name="tcp-proxy", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def __enter__(self) -> TcpProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._order(CLOSE)
        self._thread.join()

    def cut(self) -> None:
        self._order(CUT)

    def freeze(self) -> None:
        self._order(FREEZE)

    def freeze_answers(self) -> None:
        self._order(FREEZE_ANSWERS)

    def freeze_after(self, count: int) -> None:
        self._until_frozen = count

    @property
    def frozen(self) -> bool:
        return self._mode == FREEZE

    def heal(self) -> None:
        self._order(PASS)

    def _order(self, mode: str) -> None:
        """Returns when the thread that owns the sockets has carried it out."""
        done = threading.Event()
        self._orders.put((mode, done))
        self._wake.send(b".")
        if not done.wait(ORDER_TIMEOUT_S):
            raise TimeoutError(f"the proxy did not {mode} within {ORDER_TIMEOUT_S:g} s")

    def _run(self) -> None:
        while self._mode != CLOSE:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._woken.recv(1)
                    mode, done = self._orders.get()
                    self._apply(mode)
                    done.set()
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj in self._peers and not self._is_frozen(key.fileobj):
                    self._pass_on(key.fileobj)
        while self._peers:
            self._drop(next(iter(self._peers)))
        for end in (self._listener, self._wake, self._woken, self._selector):
            end.close()

    def _apply(self, mode: str) -> None:
        self._mode = mode
        for end in [end for end in self._peers if mode != CUT]:
            is_registered = end in self._selector.get_map()
            if self._is_frozen(end) and is_registered:
                self._selector.unregister(end)
            elif not self._is_frozen(end) and not is_registered:
                self._selector.register(end, selectors.EVENT_READ)
        while self._peers and mode == CUT:
            self._drop(next(iter(self._peers)))

    def _is_frozen(self, end: socket.socket) -> bool:
        return self._mode == FREEZE or (self._mode == FREEZE_ANSWERS and end in self._servers)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        self.accepted += 1
        if self._mode == CUT:
            client.close()
            return
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        self._servers[server] = None
        for end, peer in ((client, server), (server, client)):
            end.setblocking(True)
            self._peers[end] = peer
            if not self._is_frozen(end):
                self._selector.register(end, selectors.EVENT_READ)

    def _pass_on(self, end: socket.socket) -> None:
        try:
            received = end.recv(CHUNK_BYTES)
            if received:
                self._peers[end].sendall(received)
                if self._until_frozen is not None and end not in self._servers:
                    self._count(len(received))
                return
        except OSError:
            pass
        self._drop(end)

    def _count(self, passed: int) -> None:
        assert self._until_frozen is not None
        self._until_frozen -= passed
        if self._until_frozen <= 0:
            self._until_frozen = None
            self._apply(FREEZE)

    def _drop(self, end: socket.socket) -> None:
        peer = self._peers.pop(end, None)
        self._servers.pop(end, None)
        for each in (end, peer):
            if each is not None:
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(each)
                each.close()
        if peer is not None:
            self._peers.pop(peer, None)
            self._servers.pop(peer, None)
