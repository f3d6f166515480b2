"""Big requests are in the works one at a time.

What a body becomes may be several times its size, so one of those above `BIG_BODY_BYTES` is decoded, served
and answered before the next; who waits for others, as long polls do, leaves before. Two would take twice the
memory and no less time, as one thread at a time has the interpreter. The others wait in their connections'
receive buffers, which have a budget of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.net.connection import Connection

BIG_BODY_BYTES = 32 << 10  # decoded in a thread, so that hostile bodies do not hold the loop
AT_ONCE = 1


class BigBodies:
    """The gate. A connection that must wait has it as what it waits for (see `Waiting`)."""

    __slots__ = ("_inside", "_queue")

    def __init__(self) -> None:
        self._inside = 0
        self._queue: dict[Connection, None] = {}

    def enter(self, connection: Connection) -> bool:
        """Whether the request in front may be decoded now, to be followed by `leave`; else it is run again
        from its own bytes later.
        """
        if self._inside < AT_ONCE:
            self._inside += 1
            return True
        self._queue[connection] = None
        connection.waiting = self
        return False

    def leave(self) -> None:
        """A big request is through: the next one may come."""
        self._inside -= 1
        connection = next(iter(self._queue), None)
        if connection is not None:
            del self._queue[connection]
            connection.resume()

    def cancel(self, connection: Connection) -> None:
        """The connection is gone."""
        self._queue.pop(connection, None)

    @contextmanager
    def inside(self) -> Iterator[Callable[[], None]]:
        """Leaves at the end of the block, or when what it gives is called."""
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                self.leave()

        try:
            yield leave
        finally:
            leave()
