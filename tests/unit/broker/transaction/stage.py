"""Partitions led here and elsewhere, a timer in the test's hands, and other brokers that answer as told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

from replication.cluster.channel import ChannelLost
from replication.metadata.image import ClusterImage, PartitionImage, TopicImage

HERE, THERE, NOBODY = 1, 2, -1


def image_of(**leaders: list[int]) -> ClusterImage:
    """Topics by the leaders of their partitions."""
    return ClusterImage().with_topics(
        TopicImage(
            name,
            name.encode().ljust(16),
            tuple(
                PartitionImage(index, leader, 0, 0, (HERE, THERE), (HERE, THERE))
                for index, leader in enumerate(found)
            ),
        )
        for name, found in leaders.items()
    )


class Timer:
    """`ring` calls what waits, once."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Callable[[], None]]] = []

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        self.waiting.append((delay_ms, callback))

    def ring(self) -> None:
        waiting, self.waiting = self.waiting, []
        for _, callback in waiting:
            callback()


class Tasks:
    """Runs coroutines on the test's own loop when `run` is called."""

    def __init__(self) -> None:
        self.waiting: list[Coroutine[Any, Any, Any]] = []

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.waiting.append(coroutine)

    def run(self) -> None:
        async def all_of() -> None:
            waiting, self.waiting = self.waiting, []
            for coroutine in waiting:
                await coroutine

        asyncio.run(all_of())


class Others:
    """Channels to other brokers: `answer` makes a response, or raises. `asked` has what came."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Any]] = []
        self.answer: Callable[[Any], Any] = self.lost

    def lost(self, request: Any) -> Any:
        raise ChannelLost("gone")

    def to(self, broker_id: int, purpose: str) -> Any:
        async def ask(request: Any, version: int | None = None) -> Any:
            self.asked.append((broker_id, request))
            return self.answer(request)

        return SimpleNamespace(ask=ask)
