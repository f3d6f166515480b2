"""Costly requests take turns, so that those who send many of them do not stop everybody else.

Most requests take microseconds; one with 100,000 elements takes a third of a second. A connection counts as
costly from a request, or a slice of requests, that took longer than `COSTLY_SECONDS` until one that did not;
a new connection is neither costly nor cheap yet. In one pass of the event loop cheap connections are served
as they come, costly ones only one after the other until `PASS_SECONDS` are used up, and new ones as long as
nobody has used them up. So a client with ordinary requests waits for one costly request, not for as many as
there are connections that send them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from broker.net.connection import Connection

COSTLY_SECONDS = 0.005
PASS_SECONDS = 0.02


class CostlyTurns:
    """Who goes next. A `wait` ends with `Connection.resume`, unless the connection is lost before."""

    __slots__ = ("_armed", "_costly", "_loop", "_new", "_passing", "_spent")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
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
        return self._spent < PASS_SECONDS and not (connection.costly and self._costly)

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
        end = self._loop.time() + PASS_SECONDS
        while (queue := self._new or self._costly) and self._loop.time() < end:
            connection = self._passing = next(iter(queue))
            del queue[connection]
            connection.resume()
        self._passing = None
        if self._new or self._costly:
            self._arm()
