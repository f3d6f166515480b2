"""The port to the network: listeners and dials that hand over `asyncio` transports.

After a connection is made the loop calls our protocol object directly, so the port costs nothing per
byte. What it decides: one listener is one address (as in Kafka, where the empty host means every address
of the machine), and accepted sockets inherit buffer sizes and keep-alive from their listener, which saves
system calls for each connection.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Protocol, TypeAlias

ProtocolFactory: TypeAlias = Callable[[], asyncio.BaseProtocol]
Address: TypeAlias = tuple[str, int]


class Listener(Protocol):
    """An open listening socket."""

    address: Address

    async def accept(self) -> None:
        """Accept connections, first those that have waited since `listen`."""

    def close(self) -> None:
        """Accept nothing more; connections that exist go on."""


class Network(Protocol):
    """Opens listening and outgoing connections."""

    async def listen(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        *,
        backlog: int = 50,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        accepting: bool = True,
    ) -> Listener:
        """Accept connections on one address. Port 0 takes a free one; the empty host takes all addresses. If
        not `accepting`, who connects waits in the system's queue until the listener is told to `accept`.

        A buffer size of -1 leaves it to the system. OSError where the address cannot be had.
        """

    def host_name(self) -> str:
        """The machine's own name, for clients that are told no other address."""

    async def dial(
        self, host: str, port: int, factory: ProtocolFactory
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect. OSError where nobody listens or the name does not resolve."""


class LoopListener:
    """A listener on a real event loop."""

    def __init__(self, server: asyncio.Server, address: Address) -> None:
        self.address = address
        self._server = server

    async def accept(self) -> None:
        await self._server.start_serving()

    def close(self) -> None:
        self._server.close()


class LoopNetwork:
    """The machine's network through the loop in use: uvloop, or the stock loop where that is missing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def listen(
        self,
        host: str,
        port: int,
        factory: ProtocolFactory,
        *,
        backlog: int = 50,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        accepting: bool = True,
    ) -> LoopListener:
        family, address = await self._resolve(host, port)
        # with the protocol named: else the stock loop does not switch Nagle's delay off
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            _prepare(listening, not host, send_buffer_bytes, receive_buffer_bytes)
            listening.bind(address)
            listening.listen(backlog)
            server = await self._loop.create_server(
                factory, sock=listening, backlog=backlog, start_serving=accepting
            )
        except BaseException:
            listening.close()
            raise
        bound = listening.getsockname()
        return LoopListener(server, (host or str(bound[0]), int(bound[1])))

    def host_name(self) -> str:
        return socket.gethostname()

    async def dial(
        self, host: str, port: int, factory: ProtocolFactory
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return await self._loop.create_connection(factory, host, port)

    async def _resolve(self, host: str, port: int) -> tuple[int, tuple[str, int]]:
        if not host:
            return (
                (socket.AF_INET6, ("::", port))
                if socket.has_dualstack_ipv6()
                else (socket.AF_INET, ("", port))
            )
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return family, (str(address[0]), int(address[1]))


def grow_send_buffer(transport: asyncio.Transport, size_bytes: int) -> None:
    """Have the system hold so much of what was sent and has not arrived, as far as it allows: then that
    leaves in one call, and not in as many turns of the loop as a small buffer needs.
    """
    connection = transport.get_extra_info("socket")
    if connection is None:
        return
    try:
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < size_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size_bytes)
    except OSError:
        return  # the peer is gone, or the system refuses: it is served all the same


def _prepare(listening: socket.socket, every_address: bool, send_bytes: int, receive_bytes: int) -> None:
    if sys.platform != "win32":  # there the option would let two processes share the port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if listening.family == socket.AF_INET6:
        listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if every_address else 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_bytes >= 0:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_bytes)
    if receive_bytes >= 0:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
