"""Long work in pieces: in one pass of the event loop one piece is done, whoever it belongs to.

A request may name 100,000 things. What is to be done for them all would hold the loop for half a second, and
a thread cannot do it, since it reads what the loop changes. So it is done in pieces of some milliseconds, and
everybody who has such work waits for his turn between them: ten big requests, or ten thousand, hold the loop
for no longer at a time than one.

Work that is to be done so is a generator (`Steps`) that yields between its pieces, and returns its result.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Final, TypeVar

AT_ONCE: Final = 500
"""Things in a piece that take up to 10 us each."""

T = TypeVar("T")
Steps = Generator[None, None, T]


class Pieces:
    """Whose turn it is. One for a broker."""

    __slots__ = ("_armed", "_queue")

    def __init__(self) -> None:
        self._queue: deque[asyncio.Future[None]] = deque()
        self._armed = False

    def turn(self) -> asyncio.Future[None]:
        """Wait for this before each piece."""
        loop = asyncio.get_running_loop()
        come: asyncio.Future[None] = loop.create_future()
        self._queue.append(come)
        if not self._armed:
            self._armed = True
            loop.call_soon(self._pass, loop)
        return come

    async def of(self, things: Sequence[T], at_once: int = AT_ONCE) -> AsyncIterator[Sequence[T]]:
        """The things in pieces, each when its turn has come; what fits into one comes at once."""
        if len(things) <= at_once:
            yield things
            return
        for some in split(things, at_once):
            await self.turn()
            yield some

    async def run(self, steps: Steps[T]) -> T:
        """Do the first piece now and the others in their turns."""
        with closing(steps):
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result
                await self.turn()

    def many(self, steps: Steps[T], count: int) -> T | Coroutine[Any, Any, T]:
        """The result of work for so many things; a coroutine that gives it where they are too many."""
        return self.run(steps) if count > AT_ONCE else at_once(steps)

    def _pass(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._queue:
            come = self._queue.popleft()
            if not come.done():  # its task was cancelled
                come.set_result(None)
                break
        if self._queue:
            loop.call_soon(self._pass, loop)
        else:
            self._armed = False


def at_once(steps: Steps[T]) -> T:
    """Do all of it now."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def split(things: Sequence[T], at_once: int = AT_ONCE) -> Iterator[Sequence[T]]:
    """The things of one piece after the other."""
    for at in range(0, len(things), at_once):
        yield things[at : at + at_once]
