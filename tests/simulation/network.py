"""The port `runtime.network.Network` of a process on a simulated host."""

from __future__ import annotations

import asyncio
import errno
import os
import socket as names

from runtime.network import Address, ProtocolFactory
from tests.simulation.loop import HostLoop
from tests.simulation.transport import SimTransport
from tests.simulation.wire import Kernel, Port, Socket, Wire


class SimListener:
    """See `runtime.network.Listener`."""

    def __init__(self, network: SimNetwork, port: Port, host: str, factory: ProtocolFactory) -> None:
        self.address: Address = (host or "::", port.number)
        self._network, self._port, self._factory = network, port, factory

    async def accept(self) -> None:
        self._port.accept = self._connection_waits
        for _ in self._port.waiting:
            self._connection_waits()

    def close(self) -> None:
        self._network.wire.close_port(self._port)

    def _connection_waits(self) -> None:
        self._network.loop.call_soon(self._accept)

    def _accept(self) -> None:
        if self._port.waiting:
            SimTransport(self._network.loop, self._port.waiting.popleft(), self._factory()).begin()


class SimNetwork:
    """See the module."""

    def __init__(self, wire: Wire, kernel: Kernel, loop: HostLoop) -> None:
        self.wire, self.kernel, self.loop = wire, kernel, loop

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
    ) -> SimListener:
        kernel = self.kernel
        if host not in ("", "0.0.0.0", "localhost", kernel.name, kernel.address):
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        number = port or kernel.free_port()
        if number in kernel.ports:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listening = kernel.ports[number] = Port(kernel, number, self.loop, backlog)
        listener = SimListener(self, listening, host, factory)
        if accepting:
            await listener.accept()
        return listener

    def host_name(self) -> str:
        return self.kernel.name

    async def dial(
        self, host: str, port: int, factory: ProtocolFactory
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        if self.wire.find(host) is None and host != "localhost":
            raise names.gaierror(names.EAI_NONAME, "Name or service not known")
        outcome: asyncio.Future[object] = self.loop.create_future()
        source = Socket(self.kernel, self.loop, self.kernel.free_port(), f"{self.kernel.name}>{host}")

        def told(found: object) -> None:
            self.loop.call_soon(_settle, outcome, found)

        self.wire.connect(source, self.kernel.name if host == "localhost" else host, port, told)
        try:
            found = await outcome
        except asyncio.CancelledError:
            source.close()
            raise
        if isinstance(found, OSError):
            raise found
        protocol = factory()
        transport = SimTransport(self.loop, source, protocol)
        transport.begin()
        return transport, protocol


def _settle(outcome: asyncio.Future[object], found: object) -> None:
    if not outcome.done():
        outcome.set_result(found)
