"""The ports through which a broker asks other brokers.

A channel is one connection with one request in flight, dialled when it is needed. The real ones are in
broker.cluster.channels.
"""

from __future__ import annotations

from typing import Any, Protocol


class ChannelLost(OSError):
    """There is no answer: the connection could not be made, or went. The request may have arrived."""


class Channel(Protocol):
    """A connection to one broker for one purpose. A request that is cancelled closes the connection."""

    async def ask(self, request: Any, version: int | None = None) -> Any:
        """Send and await the response, at `version` or at the newest that both sides know (ApiVersions).

        Raises ChannelLost; the connection is closed then, and the next request dials anew.
        """

    def abort(self) -> None:
        """Drop the connection: a request in flight raises ChannelLost."""

    async def close(self) -> None:
        """End for good."""


class Channels(Protocol):
    """All channels of a broker."""

    def to(self, broker_id: int, purpose: str) -> Channel:
        """A channel of its own for each purpose. Its address is looked up at each dial."""
