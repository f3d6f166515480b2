"""Connections to other brokers, over the listener named inter.broker.listener.name.

A channel dials when it is asked and has no connection, at the address that the broker has at that moment.
One request is in flight on it. Whatever goes wrong, also a request that takes too long or is cancelled, drops
the connection, since the next answer on it would be that of an older request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.cluster.link import Link
from protocol.client_connection import ClientConnection
from protocol.errors import MalformedMessage, ProtocolViolation, UnsupportedVersion
from replication.cluster.channel import ChannelLost
from runtime.network import Address, Network

LOOK_AGAIN_S = 1.0


@dataclass(slots=True, frozen=True)
class ChannelSettings:
    """`address_of` tells host and port of a broker, None while it is not known. `timeout_s` is how long a
    request may take, dialling included.
    """

    client_id: str
    software_version: str
    address_of: Callable[[int], Address | None]
    timeout_s: float = 30.0


def _client(settings: ChannelSettings) -> ClientConnection:
    return ClientConnection(settings.client_id, "ottla", settings.software_version)


class DialledChannel:
    """See `replication.cluster.channel.Channel`."""

    def __init__(self, network: Network, broker_id: int, settings: ChannelSettings) -> None:
        self._network = network
        self._broker_id = broker_id
        self._settings = settings
        self._link: Link | None = None
        self._aborts = 0
        self._busy = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due = 0.0  # when the time of the newest request is over
        self._timer: asyncio.TimerHandle | None = None

    async def ask(self, request: Any, version: int | None = None) -> Any:
        """See the port."""
        assert not self._busy, "one request at a time"
        self._busy = True
        self._expires()
        try:
            link = self._link
            if link is None or link.failure is not None:
                link = await self._connected()
            if version is None and not link.client.negotiated:
                await self._negotiate(link)
            return await link.send(link.client.send(request, version))
        except (OSError, ProtocolViolation, MalformedMessage, UnsupportedVersion) as error:
            self.abort()
            raise ChannelLost(f"broker {self._broker_id}: {str(error) or type(error).__name__}") from error
        except BaseException:
            self.abort()
            raise
        finally:
            self._busy = False

    # The time of a request: one timer looks again when that of the newest request may be over, since one
    # for each request costs more than the rest of a small answer.

    def _expires(self) -> None:
        loop = self._loop = self._loop or asyncio.get_running_loop()
        self._due = loop.time() + self._settings.timeout_s
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._busy or self._loop is None:
            return
        now = self._loop.time()
        if now < self._due or self._link is None:  # dialling has a limit of its own
            self._timer = self._loop.call_at(max(self._due, now + LOOK_AGAIN_S), self._look)
        else:
            self._link.drop(TimeoutError("it did not answer in time"))

    async def _connected(self) -> Link:
        link = self._link
        if link is None or link.failure is not None:
            address = self._settings.address_of(self._broker_id)
            if address is None:
                raise ConnectionRefusedError("its address is not known")
            aborts = self._aborts
            async with asyncio.timeout(self._settings.timeout_s):
                _, dialled = await self._network.dial(*address, lambda: Link(_client(self._settings)))
            assert isinstance(dialled, Link)
            link = self._link = dialled
            if aborts != self._aborts:
                raise ConnectionAbortedError("dropped while it was dialled")
        return link

    @staticmethod
    async def _negotiate(link: Link) -> None:
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
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class DialledChannels:
    """See `replication.cluster.channel.Channels`."""

    def __init__(self, network: Network, settings: ChannelSettings) -> None:
        self._network = network
        self._settings = settings

    def to(self, broker_id: int, purpose: str) -> DialledChannel:
        """See the port. Nothing is dialled yet."""
        return DialledChannel(self._network, broker_id, self._settings)
