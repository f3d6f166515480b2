"""The watch on how long the loop was held up."""

import asyncio
import threading
import time

import pytest

from runtime.stalls import Stall, StallWatch
from tests.unit.runtime.loops import LOOPS, run_on


def hold(at_work: bool) -> None:
    until = time.thread_time() + 0.4
    while at_work and time.thread_time() < until:
        pass
    if not at_work:
        threading.Event().wait(0.4)


@pytest.mark.parametrize("factory", LOOPS)
@pytest.mark.parametrize("at_work", [True, False])
def test_stall_watch_sees_how_long_the_loop_was_held_and_whether_it_worked(factory, at_work):
    async def main():
        loop = asyncio.get_running_loop()
        watch = StallWatch(loop, time.thread_time)
        watch.start()
        await asyncio.sleep(0.05)
        watch.take()  # what the machine held up until here
        hold(at_work)
        # Until the next tick, for more may be held up later.
        while not (held := watch.take()).seconds:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert held.seconds >= 0.3
        assert (held.worked >= 0.3) == at_work
        assert watch.take() == Stall()
        watch.stop()

    run_on(factory, main())
