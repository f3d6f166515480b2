"""Runs tools of ours in forks of one process that is ready for them (`tool_forker.py`), for `ottla_tool`.

What a test gets is what a process of its own would give: all that was printed, and the exit code.
`tests/tools/test_processes.py` compares the two. A forker that has ended is followed by another, and so is
one whose environment is no longer the test's.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from tests.support.tool_forker import NEVER_FORKED, NUMBER_BYTES

CHECKOUT = Path(__file__).resolve().parents[2]


class ToolForker:
    """The running process. One call at a time."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self._door, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.tool_forker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=CHECKOUT,
                env=environment,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the process."""
        atexit.unregister(self.close)
        self._door.close()
        self.process.kill()
        self.process.wait()

    def serves(self, environment: dict[str, str]) -> bool:
        """Whether a fork of it is what a process with that environment would be."""
        return self.environment == environment and self.process.poll() is None

    def run(
        self, arguments: Sequence[str], stdin: str | None, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Runs `ottla ARGUMENTS`; subprocess.TimeoutExpired for one that takes longer, which is killed."""
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            streams[0].write((stdin or "").encode())
            streams[0].seek(0)
            code = self._call(arguments, streams, timeout_s)
            return subprocess.CompletedProcess([*arguments], code, printed(streams[1]), printed(streams[2]))

    def _call(self, arguments: Sequence[str], streams: Sequence[BinaryIO], timeout_s: float) -> int:
        request = json.dumps(arguments).encode()
        descriptors = [stream.fileno() for stream in streams]
        socket.send_fds(self._door, [len(request).to_bytes(NUMBER_BYTES)], descriptors)
        self._door.sendall(request)
        pid = self._answer()
        self._door.settimeout(timeout_s)
        try:
            return self._answer()
        except TimeoutError:
            self._door.settimeout(None)
            os.kill(pid, signal.SIGKILL)
            self._answer()
            raise subprocess.TimeoutExpired([*arguments], timeout_s) from None
        finally:
            self._door.settimeout(None)

    def _answer(self) -> int:
        answer = self._door.recv(NUMBER_BYTES)
        if len(answer) != NUMBER_BYTES:
            raise RuntimeError(f"the process that forks tools ended with {self.process.wait()}")
        return int.from_bytes(answer, signed=True)


def printed(stream: BinaryIO) -> str:
    """All that was written to a stream, with the ends of lines as `subprocess` reads them."""
    stream.seek(0)
    return stream.read().decode().replace("\r\n", "\n").replace("\r", "\n")


def environment_of_tools() -> dict[str, str]:
    """This process's environment, but for what tells of the test that runs."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


_running = threading.Lock()
_forker: list[ToolForker] = []


@contextlib.contextmanager
def free_tool_forker(name: str) -> Iterator[ToolForker | None]:
    """The process for one call; None for what is never forked, and beside one that runs (a thread's)."""
    if name in NEVER_FORKED or not _running.acquire(blocking=False):
        yield None
        return
    try:
        environment = environment_of_tools()
        if not (_forker and _forker[0].serves(environment)):
            while _forker:
                _forker.pop().close()
            _forker.append(ToolForker(environment))
        yield _forker[0]
    finally:
        _running.release()
