"""What the controller has to do, one thing after the other.

Events that need an active controller are refused when there is none, and all of those that wait are refused
at once when a controller's time ends. Watches come in storms and their events read everything anew, so one
that waits already stands for those that follow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


class NotController(Exception):
    """This broker is not the active controller, or ceased to be it before the request's turn."""


def _ignore(_: Exception) -> None:
    """Nobody waits for this event."""


@dataclass(slots=True)
class Event:
    """`run` does it. `fail` tells who waits for it that it was refused or went wrong; `key` names events of
    which one is enough.
    """

    name: str
    run: Callable[[], Awaitable[None]]
    needs_controller: bool = True
    fail: Callable[[Exception], None] = _ignore
    key: str | None = None


class EventQueue:
    """First in, first out."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._keys: dict[str, None] = {}
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: Event) -> None:
        if event.key is not None:
            if event.key in self._keys:
                return
            self._keys[event.key] = None
        self._waiting.append(event)
        self._added.set()

    async def next(self) -> Event:
        """The first event, taken out, as soon as there is one."""
        while not self._waiting:
            self._added.clear()
            await self._added.wait()
        event = self._waiting.popleft()
        if event.key is not None:
            del self._keys[event.key]
        return event

    def refuse_waiting(self) -> None:
        """Refuse what needs a controller; the rest stays in its order."""
        waiting, self._waiting = self._waiting, deque()
        self._keys.clear()
        for event in waiting:
            if event.needs_controller:
                event.fail(NotController())
            else:
                self.put(event)
