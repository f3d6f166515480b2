"""Long loops of the controller in slices, with a pass of the event loop between them.

A broker may be the controller of ten thousand partitions and serves its clients on the same loop. What the
controller reads does not change meanwhile: only its own events change it, and they run one at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import islice
from typing import Final, TypeVar

AT_ONCE: Final = 500
"""Things in a slice that take up to 20 us each."""

T = TypeVar("T")


async def slices(things: Iterable[T], at_once: int = AT_ONCE) -> AsyncIterator[list[T]]:
    """The things in lists of `at_once`. The iterable may be a view of what the caller does not change."""
    source = iter(things)
    while taken := list(islice(source, at_once)):
        yield taken
        if len(taken) == at_once:
            await asyncio.sleep(0)
