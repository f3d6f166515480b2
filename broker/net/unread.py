"""Answers that peers do not read: one connection holds few of them, many connections may hold many.

A connection that cannot get rid of its answers is served nothing more, but the answers it was given stand in
memory. When all connections together hold more than `UNREAD_BYTES`, those that have been stuck for longest
are closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.net.connection import Connection

UNREAD_BYTES = 128 << 20


class UnreadAnswers:
    """Who is stuck, longest first, with how many bytes."""

    __slots__ = ("_stuck", "held_bytes")

    def __init__(self) -> None:
        self.held_bytes = 0
        self._stuck: dict[Connection, int] = {}

    def add(self, connection: Connection, size: int) -> None:
        """The connection has got stuck with so many bytes."""
        self.remove(connection)
        self._stuck[connection] = size
        self.held_bytes += size
        while self.held_bytes > UNREAD_BYTES and len(self._stuck) > 1:
            longest = next(iter(self._stuck))
            self.remove(longest)
            longest.drop("its answers are not read, and those of all connections take too much memory")

    def remove(self, connection: Connection) -> None:
        """The connection goes on, or is gone."""
        self.held_bytes -= self._stuck.pop(connection, 0)
