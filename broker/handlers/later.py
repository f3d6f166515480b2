"""An answer that is not there when its handler returns: it comes by a call, without a task.

A handler hands `Later` out as its result when somebody else, a coordinator's state machine or the write of a
turn, will call `give` with the response. The connection waits meanwhile; what comes after the client has gone
is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class Later:
    """One response, given once."""

    __slots__ = ("_given", "_response", "_tell")

    def __init__(self) -> None:
        self._given = False
        self._response: Any = None
        self._tell: Callable[[Any], None] | None = None

    def give(self, response: Any) -> None:
        """The response has come. A second one is a broken invariant."""
        assert not self._given, "an answer was given twice"
        self._given = True
        if self._tell is None:
            self._response = response
        else:
            self._tell(response)

    def now_or_later(self) -> Any:
        """What the handler returns: the response if it has come already, else this object."""
        return self._response if self._given else self

    def then(self, tell: Callable[[Any], None]) -> None:
        """Have `tell` called with the response when it comes. Called once, by the dispatcher."""
        self._tell = tell

    async def response(self) -> Any:
        """The response, for a handler that runs in a task; in place of `then`."""
        if not self._given:
            come = asyncio.get_running_loop().create_future()
            self.then(lambda response: None if come.done() else come.set_result(response))  # cancelled
            return await come
        return self._response
