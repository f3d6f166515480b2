"""Connections to other brokers, over the listener named inter.broker.listener.name.

A channel dials when it is asked and has no connection, at the address that the broker has at that moment.
One request is in flight on it. Whatever goes wrong, also a request that takes too long or is cancelled, drops
the connection, since the next answer on it would be that of an older request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from protocol.client_connection import ClientConnection
from protocol.errors import MalformedMessage, ProtocolViolation, UnsupportedVersion
from replication.cluster.channel import ChannelLost
from runtime.network import Address, Network


@dataclass(slots=True, frozen=True)
class ChannelSettings:
    """`address_of` tells host and port of a broker, None while it is not known. `timeout_s` is how long a
    request may take, dialling included.
    """

    client_id: str
    software_version: str
    address_of: Callable[[int], Address | None]
    timeout_s: float = 30.0


class _Link(asyncio.Protocol):
    """One connection: bytes to the sans-I/O client and back."""

    def __init__(self, settings: ChannelSettings) -> None:
        self.client = ClientConnection(settings.client_id, "ottla", settings.software_version)
        self.failure: Exception | None = None
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[Any] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass

    def data_received(self, data: bytes) -> None:
        try:
            for _, message in self.client.receive(data):
                answer, self._answer = self._answer, None
                if answer is None:
                    raise ProtocolViolation("an answer that nobody waits for")
                if not answer.done():
                    answer.set_result(message)
        except (ProtocolViolation, MalformedMessage) as error:
            self.drop(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionResetError("the other side closed the connection"))

    def drop(self, reason: Exception) -> None:
        """Close at once; who waits for an answer hears the reason."""
        self._fail(reason)
        self._transport.abort()

    def _fail(self, reason: Exception) -> None:
        self.failure = self.failure or reason
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(self.failure)

    async def send(self, frame: bytes) -> Any:
        """Send one request and await its answer."""
        if self.failure is not None:
            raise self.failure
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        return await answer


class DialledChannel:
    """See `replication.cluster.channel.Channel`."""

    def __init__(self, network: Network, broker_id: int, settings: ChannelSettings) -> None:
        self._network = network
        self._broker_id = broker_id
        self._settings = settings
        self._link: _Link | None = None
        self._aborts = 0
        self._busy = False

    async def ask(self, request: Any, version: int | None = None) -> Any:
        """See the port."""
        assert not self._busy, "one request at a time"
        self._busy = True
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                link = await self._connected()
                if version is None and not link.client.negotiated:
                    await self._negotiate(link)
                return await link.send(link.client.send(request, version))
        except (OSError, TimeoutError, ProtocolViolation, MalformedMessage, UnsupportedVersion) as error:
            self.abort()
            raise ChannelLost(f"broker {self._broker_id}: {str(error) or type(error).__name__}") from error
        except BaseException:
            self.abort()
            raise
        finally:
            self._busy = False

    async def _connected(self) -> _Link:
        link = self._link
        if link is None or link.failure is not None:
            address = self._settings.address_of(self._broker_id)
            if address is None:
                raise ConnectionRefusedError("its address is not known")
            aborts = self._aborts
            _, dialled = await self._network.dial(*address, lambda: _Link(self._settings))
            assert isinstance(dialled, _Link)
            link = self._link = dialled
            if aborts != self._aborts:
                raise ConnectionAbortedError("dropped while it was dialled")
        return link

    @staticmethod
    async def _negotiate(link: _Link) -> None:
        """Learn the broker's versions; a refusal of our ApiVersions names one that it takes."""
        for _ in range(2):
            if not link.client.negotiated:
                await link.send(link.client.negotiate())

    def abort(self) -> None:
        """See the port."""
        self._aborts += 1
        link, self._link = self._link, None
        if link is not None:
            link.drop(ConnectionAbortedError("dropped"))

    async def close(self) -> None:
        """See the port."""
        self.abort()


class DialledChannels:
    """See `replication.cluster.channel.Channels`."""

    def __init__(self, network: Network, settings: ChannelSettings) -> None:
        self._network = network
        self._settings = settings

    def to(self, broker_id: int, purpose: str) -> DialledChannel:
        """See the port. Nothing is dialled yet."""
        return DialledChannel(self._network, broker_id, self._settings)
