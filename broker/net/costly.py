"""Costly requests take turns, so that those who send many of them do not stop everybody else.

Most requests take microseconds; one with 100,000 elements takes a third of a second. A connection counts as
costly from a request, or a slice of requests, that took longer than `SLICE_SECONDS` until one that did not; a
new connection is neither costly nor cheap yet. In one pass of the event loop cheap connections are served as
they come, costly ones one after the other until they have used up such a slice together, and new ones unless
somebody has. So a client with ordinary requests waits for one costly request, not for as many as there are
connections that send them. Slices are short because libuv accepts one connection in a pass: a client that
comes while hundreds do waits for as many passes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from runtime.clock import Clock

SLICE_SECONDS = 0.005  # of processor time


class CostlyTurns:
    """Who goes next. A `wait` ends with `Connection.resume`, unless the connection is lost before."""

    __slots__ = ("_armed", "_clock", "_costly", "_loop", "_new", "_passing", "_spent")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop, self._clock = loop, clock
        self._new: dict[Connection, None] = {}
        self._costly: dict[Connection, None] = {}
        self._spent = 0.0  # seconds of this pass that went to costly requests
        self._armed = False
        self._passing: Connection | None = None  # whose turn it is

    def may_serve(self, connection: Connection, api: int) -> bool:
        """Whether a connection that is not known as cheap may be served at once.

        ApiVersions, with which clients begin, always may, and shows that they are cheap.
        """
        if self._passing is connection or api >> 16 == ApiKey.API_VERSIONS:
            return True
        return self._spent < SLICE_SECONDS and not (connection.costly and self._costly)

    def spent(self, seconds: float) -> None:
        """A costly request has kept the loop busy."""
        self._spent += seconds
        self._arm()

    def wait(self, connection: Connection) -> None:
        """Let the connection go on when it is its turn."""
        (self._costly if connection.costly else self._new)[connection] = None
        self._arm()

    def leave(self, connection: Connection) -> None:
        """The connection is lost."""
        self._new.pop(connection, None)
        self._costly.pop(connection, None)

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._loop.call_soon(self._pass)

    def _pass(self) -> None:
        self._armed = False
        self._spent = 0.0
        end = self._clock.worked() + SLICE_SECONDS
        while (queue := self._new or self._costly) and self._clock.worked() < end:
            connection = self._passing = next(iter(queue))
            del queue[connection]
            connection.resume()
        self._passing = None
        if self._new or self._costly:
            self._arm()
