"""Threads for blocking work, and the bound on what waits for them."""

import asyncio
import threading

import pytest

from runtime.blocking import BlockingBusy, ThreadBlocking


def test_runs_on_another_thread_and_hands_back_results_and_errors():
    async def main() -> None:
        blocking = ThreadBlocking(asyncio.get_running_loop())
        assert await blocking.submit(threading.get_ident) != threading.get_ident()
        assert await blocking.submit(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await blocking.submit(divmod, 1, 0)
        blocking.close()

    asyncio.run(main())


def test_refuses_work_beyond_the_bound_and_takes_it_again_later():
    async def main() -> None:
        blocking = ThreadBlocking(asyncio.get_running_loop(), max_waiting=2)
        gate = threading.Event()
        held = [blocking.submit(gate.wait, 10) for _ in range(2)]
        with pytest.raises(BlockingBusy):
            blocking.submit(int)
        gate.set()
        assert await asyncio.gather(*held) == [True, True]
        await asyncio.sleep(0)
        assert await blocking.submit(int) == 0
        blocking.close()

    asyncio.run(main())


def test_settled_waits_for_calls_whose_callers_were_cancelled():
    async def main() -> None:
        blocking = ThreadBlocking(asyncio.get_running_loop())
        started, gate, ended = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            started.set()
            gate.wait(60)
            ended.set()

        call = blocking.submit(work)
        started.wait(60)
        call.cancel()
        settled = asyncio.ensure_future(blocking.settled())
        await asyncio.sleep(0)
        assert not settled.done()
        gate.set()
        await settled
        assert ended.is_set()
        await blocking.settled()  # with nothing to wait for
        blocking.close()

    asyncio.run(main())
