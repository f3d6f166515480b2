"""One listening address: accepts connections within the limits and knows which of them are open.

The name decides what clients are told (advertised addresses are per listener) and stands in log lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.net.connection import Connection
from broker.net.hub import log
from broker.net.limits import Admission

if TYPE_CHECKING:
    from broker.net.hub import Hub
    from runtime.network import Listener as Socket


class Listener:
    """`host` empty means all addresses; `port` is the bound one once `open` returned."""

    __slots__ = ("_closing", "_hub", "_socket", "host", "name", "port")

    def __init__(self, hub: Hub, name: str, host: str, port: int) -> None:
        self._hub = hub
        self.name, self.host, self.port = name, host, port
        self._socket: Socket | None = None
        self._closing = False

    async def open(self, backlog: int, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1) -> None:
        """Bind and listen; who connects waits until `serve`. OSError when the address is taken or not
        ours. (The waiting is the system's: uvloop reads what a new connection has sent already, also from a
        transport that is paused when it is made.)
        """
        hub = self._hub
        self._socket = await hub.env.network.listen(
            self.host,
            self.port,
            lambda: Connection(hub, self),
            backlog=backlog,
            send_buffer_bytes=send_buffer_bytes,
            receive_buffer_bytes=receive_buffer_bytes,
            accepting=False,
        )
        self.port = self._socket.address[1]

    async def serve(self) -> None:
        """The broker is ready."""
        assert self._socket is not None, "open it first"
        await self._socket.accept()

    def close(self) -> None:
        """Stop accepting; open connections stay."""
        self._closing = True
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def connected(self, connection: Connection) -> None:
        """A connection was accepted: count it, make room for it, or refuse it."""
        hub = self._hub
        peer = connection.transport.get_extra_info("peername") or ("", 0)
        connection.peer_ip, connection.peer_port = peer[0], peer[1]
        admission = Admission.REFUSED if self._closing else hub.limits.admit(connection.peer_ip)
        if admission is Admission.REFUSED:
            connection.closed = True
            connection.transport.abort()
            if not self._closing:
                log.info("Refused a connection from %s: max.connections.per.ip is reached", connection.peer)
            return
        hub.connections[connection] = None
        if admission is Admission.ONE_TOO_MANY:
            quietest = min(hub.connections, key=lambda other: other.seen)
            log.info("Closing the connection from %s: max.connections is reached", quietest.peer)
            quietest.shut()

    def disconnected(self, connection: Connection) -> None:
        """The transport is gone."""
        if connection in self._hub.connections:
            del self._hub.connections[connection]
            self._hub.limits.release(connection.peer_ip)
        for tell in self._hub.departures:
            tell(connection)
