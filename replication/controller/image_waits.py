"""Waiting until this broker's own picture of the cluster shows what the controller has done.

A client that is told that its topic exists must find it on the broker that told it so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from replication.metadata.image import ClusterImage, ImageHolder

Shown = Callable[[ClusterImage], bool]


class ImageWaits:
    """All who wait for an image."""

    def __init__(self, holder: ImageHolder) -> None:
        self._holder = holder
        self._waiting: dict[asyncio.Future[None], Shown] = {}
        holder.subscribe(self._on_image)

    async def until(self, shown: Shown, timeout_ms: int) -> bool:
        """Return as soon as `shown(image)` holds; False when the time is over first."""
        if shown(self._holder.current):
            return True
        if timeout_ms <= 0:
            return False
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = shown
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await future
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(future, None)
        return True

    def _on_image(self, _: ClusterImage, image: ClusterImage) -> None:
        for future, shown in list(self._waiting.items()):
            if not future.done() and shown(image):
                future.set_result(None)


def leads(image: ClusterImage, topic: str, partitions: int = 1, topic_id: bytes | None = None) -> bool:
    """Whether the topic has so many partitions at least, all of them with a leader."""
    found = image.topics.get(topic)
    if found is None or len(found.partitions) < partitions or topic_id not in (None, found.topic_id):
        return False
    return all(partition.leader >= 0 for partition in found.partitions)
