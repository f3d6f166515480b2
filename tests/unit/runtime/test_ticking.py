"""A thread that does what it is given and ticks meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from runtime.ticking import TickingThread

LIMIT_S = 60


def run(story):
    async def main():
        async with asyncio.timeout(LIMIT_S):
            await story()

    asyncio.run(main())


def test_work_is_done_in_order_on_one_thread_of_its_own():
    async def story():
        thread = TickingThread(asyncio.get_running_loop(), "t", 60, lambda: None)
        done = []
        work = [thread.submit(lambda n=n: (done.append(n), threading.get_ident())[1]) for n in range(20)]
        idents = await asyncio.gather(*work)
        assert done == list(range(20))
        assert set(idents).isdisjoint({threading.get_ident()})
        assert len(set(idents)) == 1
        thread.stop()

    run(story)


def test_what_work_raises_goes_to_who_gave_it():
    async def story():
        thread = TickingThread(asyncio.get_running_loop(), "t", 60, lambda: None)
        with pytest.raises(ZeroDivisionError):
            await thread.submit(lambda: 1 / 0)
        assert await thread.submit(lambda: 7) == 7
        thread.stop()

    run(story)


def test_it_ticks_while_nothing_and_while_much_is_to_do_also_after_a_failure():
    async def story():
        loop = asyncio.get_running_loop()
        ticks = asyncio.Semaphore(0)
        count = 0

        def tick():
            nonlocal count
            count += 1
            thread.post(ticks.release)
            if count == 1:
                raise ValueError("the first one fails")

        thread = TickingThread(loop, "t", 0.001, tick)
        for _ in range(3):
            await ticks.acquire()
        before = count
        while count < before + 3:
            await thread.submit(lambda: None)
        thread.stop()

    run(story)


def test_what_was_given_before_the_stop_is_done():
    async def story():
        thread = TickingThread(asyncio.get_running_loop(), "t", 60, lambda: None)
        work = [thread.submit(lambda n=n: n) for n in range(5)]
        thread.stop()
        assert await asyncio.gather(*work) == [0, 1, 2, 3, 4]

    run(story)


def test_nothing_happens_when_the_loop_is_closed():
    loop = asyncio.new_event_loop()
    thread = TickingThread(loop, "t", 60, lambda: None)
    loop.close()
    thread.post(print, "never")
    thread.stop()
