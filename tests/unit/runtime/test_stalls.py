"""The watch on how long the loop was held up."""

import asyncio
import time

import pytest

from runtime.stalls import StallWatch
from tests.unit.runtime.loops import LOOPS, run_on


@pytest.mark.parametrize("factory", LOOPS)
def test_stall_watch_sees_how_long_the_loop_was_held(factory):
    async def main():
        loop = asyncio.get_running_loop()
        watch = StallWatch(loop)
        watch.start()
        await asyncio.sleep(0.05)
        until = time.monotonic() + 0.15
        while time.monotonic() < until:  # hold the loop
            pass
        await asyncio.sleep(0.05)
        assert 0.08 <= watch.take() <= 2
        assert watch.take() < 0.08
        watch.stop()

    run_on(factory, main())
