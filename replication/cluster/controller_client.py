"""Asks whichever broker is the controller, as the metadata cache names it.

One connection, dialled anew when another broker has become the controller; one request at a time. For what is
asked rarely: blocks of producer ids, the creation of topics on first use, a controlled shutdown. Each of them
has a client of its own, so that none waits until another one's request is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from replication.cluster.channel import Channel, ChannelLost, Channels


class ControllerClient:
    """`controller` tells the id of the controller, -1 where it is not known; `purpose` names the line."""

    def __init__(self, channels: Channels, controller: Callable[[], int], purpose: str) -> None:
        self._channels = channels
        self._controller = controller
        self._purpose = purpose
        self._channel: tuple[int, Channel] | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    async def ask(self, request: Any) -> Any:
        """The answer, at the newest version that both know. Raises ChannelLost."""
        async with self._turn:
            controller = self._controller()
            if self._channel is not None and self._channel[0] != controller:
                await self._leave()
            if controller < 0:
                raise ChannelLost("no controller is known")
            if self._closed:
                raise ChannelLost("this broker is stopping")
            if self._channel is None:
                self._channel = controller, self._channels.to(controller, self._purpose)
            return await self._channel[1].ask(request)

    async def close(self) -> None:
        """End the connection; who waits for an answer gets none, and nobody asks any more."""
        self._closed = True
        if self._channel is not None:
            self._channel[1].abort()
        async with self._turn:
            await self._leave()

    async def _leave(self) -> None:
        if self._channel is not None:
            _, channel = self._channel
            self._channel = None
            await channel.close()
