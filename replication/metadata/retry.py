"""Calls of the metadata store that are made again until an answer comes.

Only for what may be done twice without harm: reads, and writes that name the version they expect. Of the
latter a BadVersion or NodeExists after a lost connection may mean that the first attempt was applied; the
caller then reads and compares. `retried` ends with the session, `outlasting` goes on in the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from replication.metadata.store import ConnectionLost, MetadataStore, SessionExpired

_T = TypeVar("_T")

PAUSE_S = 0.05


async def retried(store: MetadataStore, call: Callable[[], Awaitable[_T]]) -> _T:
    """The outcome of the first call that was answered. Raises what it raises, and SessionExpired when the
    session ended first: what was lost belonged to it, and must not be done in the next one.
    """
    while True:
        try:
            return await call()
        except ConnectionLost:
            await asyncio.sleep(PAUSE_S)
            await store.connected()


async def outlasting(store: MetadataStore, call: Callable[[], Awaitable[_T]]) -> _T:
    """The outcome of the first call that was answered, also in a later session: for what belongs to none."""
    while True:
        try:
            return await retried(store, call)
        except SessionExpired:
            await asyncio.sleep(PAUSE_S)
