"""Work that would hold the interpreter's lock, in processes of their own.

A worker is a child interpreter (`python -P`, our packages put first on its path) that takes pickled calls
from its standard input and answers on a pipe; what it prints goes to our standard error. Functions must
be importable by name. Workers start with the first call that needs one and end when their input ends, so
they never outlive the broker.

A call ends in a result, in the exception that the function raised, or in `WorkerCrashed`; a worker that
crashed or whose caller was cancelled is replaced.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from runtime.worker_main import LENGTH

_T = TypeVar("_T")
_ROOT = str(Path(__file__).resolve().parent.parent)
_START = "import sys; sys.path.insert(0, sys.argv[1]); from runtime.worker_main import main; main()"
_EXIT_SECONDS = 5.0


class WorkerCrashed(RuntimeError):
    """The process that ran the call ended without an answer."""


class _Worker:
    """One child and the call it runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout

    async def call(self, request: bytes) -> tuple[bool, Any]:
        try:
            self._requests.write(LENGTH.pack(len(request)) + request)
            await self._requests.drain()
            (size,) = LENGTH.unpack(await self._answers.readexactly(LENGTH.size))
            answer: tuple[bool, Any] = pickle.loads(await self._answers.readexactly(size))
            return answer
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            code = await self._process.wait()
            raise WorkerCrashed(f"worker process {self._process.pid} ended with code {code}") from error

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def close(self) -> None:
        """Let the process end; kill it if it does not."""
        self._requests.close()
        try:
            async with asyncio.timeout(_EXIT_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self.kill()
            await self._process.wait()


class Workers:
    """Up to `count` worker processes; more calls than that wait their turn, in order."""

    def __init__(self, count: int) -> None:
        self._turns = asyncio.Semaphore(count)
        self._free: list[_Worker] = []
        self._running: dict[_Worker, None] = {}
        self._ending: list[_Worker] = []  # that nobody has waited for yet
        self._closed = False

    async def call(self, function: Callable[..., _T], *args: Any) -> _T:
        """Run `function(*args)` in a worker. Raises what it raises, or WorkerCrashed."""
        request = pickle.dumps((function, args), pickle.HIGHEST_PROTOCOL)
        async with self._turns:
            self._check_open()
            worker = self._free.pop() if self._free else await _start()
            self._running[worker] = None
            try:
                self._check_open()  # it may have been closed meanwhile
                good, result = await worker.call(request)
            except BaseException:  # also a cancelled caller: the answer would come to the next call
                worker.kill()
                self._ending.append(worker)
                raise
            else:
                self._free.append(worker)
            finally:
                del self._running[worker]
        if good:
            value: _T = result
            return value
        raise result

    def call_from_thread(
        self, loop: asyncio.AbstractEventLoop, function: Callable[..., _T], *args: Any
    ) -> Future[_T]:
        """The same for a thread that is not the loop's; it waits for the future it gets."""
        return asyncio.run_coroutine_threadsafe(self.call(function, *args), loop)

    def _check_open(self) -> None:
        if self._closed:
            raise WorkerCrashed("the workers are closed")

    async def close_idle(self) -> None:
        """End the workers that wait for a call; the next one starts another."""
        self._ending += self._free
        self._free.clear()
        for worker in list(self._ending):
            await worker.close()  # a caller that is cancelled here leaves it to the next
            if worker in self._ending:
                self._ending.remove(worker)

    async def aclose(self) -> None:
        """End all workers; calls in progress fail with WorkerCrashed."""
        self._closed = True
        for worker in list(self._running):
            worker.kill()
        await self.close_idle()


async def _start() -> _Worker:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-c",
        _START,
        _ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    return _Worker(process)
