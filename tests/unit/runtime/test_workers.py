"""Worker processes: results, errors, crashes, cancellation, order of closing."""

import asyncio
import os
import signal
import threading

import pytest

from runtime.workers import WorkerCrashed, Workers, _Worker


def with_workers(body, count=1):
    async def main():
        workers = Workers(count)
        try:
            return await body(workers)
        finally:
            await workers.aclose()

    return asyncio.run(main())


def test_calls_run_in_another_process_which_is_used_again():
    async def body(workers):
        first = await workers.call(os.getpid)
        assert first != os.getpid()
        assert await workers.call(os.getpid) == first
        assert await workers.call(divmod, 17, 5) == (3, 2)
        big = b"x" * 3_000_000
        assert await workers.call(bytes.upper, big) == big.upper()

    with_workers(body)


def test_worker_finds_our_packages_first():
    async def body(workers):
        import importlib

        module = await workers.call(importlib.util.find_spec, "runtime.workers")
        import runtime.workers

        assert module.origin == runtime.workers.__file__

    with_workers(body)


def test_an_exception_of_the_function_comes_back_and_the_worker_lives():
    async def body(workers):
        pid = await workers.call(os.getpid)
        with pytest.raises(ZeroDivisionError):
            await workers.call(divmod, 1, 0)
        with pytest.raises(FileNotFoundError):
            await workers.call(os.stat, "/nothing/here")
        assert await workers.call(os.getpid) == pid

    with_workers(body)


def test_a_result_that_cannot_be_pickled_is_an_error():
    async def body(workers):
        with pytest.raises((TypeError, RuntimeError)):
            await workers.call(threading.Lock)
        assert await workers.call(int, "4") == 4

    with_workers(body)


def test_a_worker_that_dies_fails_its_call_and_is_replaced():
    async def body(workers):
        pid = await workers.call(os.getpid)
        with pytest.raises(WorkerCrashed, match="code 3"):
            await asyncio.wait_for(workers.call(os._exit, 3), 60)
        assert await workers.call(os.getpid) != pid

    with_workers(body)


def test_a_cancelled_call_does_not_answer_the_next_one():
    async def body(workers):
        waiting = asyncio.ensure_future(workers.call(signal.pause))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiting, 0.3)
        assert await asyncio.wait_for(workers.call(int, "5"), 60) == 5

    with_workers(body)


def test_closing_fails_calls_in_progress():
    async def main():
        workers = Workers(1)
        await workers.call(os.getpid)
        call = asyncio.ensure_future(workers.call(signal.pause))
        await asyncio.sleep(0)
        await workers.aclose()
        with pytest.raises(WorkerCrashed):
            await asyncio.wait_for(call, 60)

    asyncio.run(main())


def test_more_calls_than_workers_wait_their_turn():
    async def body(workers):
        answers = await asyncio.gather(*(workers.call(int, str(i)) for i in range(6)))
        assert answers == list(range(6))

    with_workers(body, count=2)


def test_a_thread_calls_and_waits():
    async def body(workers):
        loop = asyncio.get_running_loop()

        def on_thread():
            return workers.call_from_thread(loop, divmod, 17, 5).result()

        assert await asyncio.to_thread(on_thread) == (3, 2)

    with_workers(body)


class Ending:
    """A process that ends when the test says so."""

    stdout, returncode, pid = object(), None, 1

    def __init__(self):
        self.stdin, self.ended = self, asyncio.get_running_loop().create_future()

    def close(self):
        """Of its input."""

    async def wait(self):
        return await self.ended


def test_a_cancellation_in_the_moment_in_which_a_process_ends_is_not_lost():
    """Else the task that closes its worker goes on, and whoever waits for its end waits for ever."""

    async def main():
        process = Ending()
        closing = asyncio.ensure_future(_Worker(process).close())
        for _ in range(3):
            await asyncio.sleep(0)
        process.ended.set_result(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing

    asyncio.run(main())
