"""A Fetch that waits for more to read, whichever way it came: no task and no timer.

It is its own entry wherever it is parked: in the waiters of its partitions or of its session, in a bucket of
deadlines, and as what its connection waits for. Once it is woken it has left all of them or is parked anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from broker.handlers.big_fetch import BigFetch

if TYPE_CHECKING:
    from broker.handlers.fetch import FetchHandler
    from broker.net.connection import Connection
    from protocol.headers import RequestHeader
    from replication.fetch import Answer
    from replication.fetch_sessions import FetchContext


class ParkedFetch(ABC):
    """See the module. `_header` tells what is asked, `_answer` sends what was read."""

    __slots__ = ("_bucket", "_connection", "_context", "_handler")

    _bucket: dict[Any, None]
    _connection: Connection
    _context: FetchContext
    _handler: FetchHandler

    @abstractmethod
    def _header(self) -> RequestHeader: ...

    @abstractmethod
    def _answer(self, answer: Answer) -> None: ...

    def park(self) -> None:
        """Wait in the places of the context, for as long as the client has patience."""
        connection, context = self._connection, self._context
        self._bucket = connection.hub.deadlines.add(self, context.params.max_wait_ms)
        connection.waiting = self
        context.park(self)

    def wake(self) -> None:
        """There may be more to read."""
        self._context.unpark(self)
        if self._context.is_big:
            self._hand_over()
            return
        answer = self._context.read()
        if answer.ready:
            self._finish(answer)
        else:
            self._context.park(self)

    def expire(self) -> None:
        """The waiting time is over: answer with what there is."""
        self._context.unpark(self)
        if self._context.is_big:
            self._hand_over()
        else:
            self._finish(self._context.read())

    def cancel(self, connection: Connection) -> None:
        """The connection is gone."""
        self._context.unpark(self)
        self._bucket.pop(self, None)

    def _hand_over(self) -> None:
        """More has changed in the session than can be read at once."""
        self._bucket.pop(self, None)
        BigFetch(self._handler, self._connection, self._header()).answer(self._context, None)

    def _finish(self, answer: Answer) -> None:
        self._bucket.pop(self, None)
        connection = self._connection
        connection.waiting = None
        if not connection.closed:
            self._answer(answer)
            if connection.waiting is None:
                connection.resume()
