"""Waiting for what this broker's metadata shows."""

from __future__ import annotations

import asyncio

from replication.controller.image_waits import ImageWaits
from replication.metadata.image import ClusterImage, ImageHolder
from tests.support.virtual_loop import run


def test_it_returns_when_the_image_shows_it():
    async def story():
        holder = ImageHolder()
        waits = ImageWaits(holder)
        waiting = asyncio.ensure_future(waits.until(lambda image: image.controller_id == 2, 1000))
        await asyncio.sleep(0.1)
        holder.publish(ClusterImage(controller_id=1))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        holder.publish(ClusterImage(controller_id=2))
        assert await waiting
        assert await waits.until(lambda image: image.controller_id == 2, 0)

    run(story())


def test_it_gives_up_when_the_time_is_over():
    async def story():
        waits = ImageWaits(ImageHolder())
        loop = asyncio.get_running_loop()
        assert not await waits.until(lambda _: False, 700)
        assert round(loop.time(), 3) == 0.7
        assert not await waits.until(lambda _: False, 0)
        assert waits._waiting == {}

    run(story())
