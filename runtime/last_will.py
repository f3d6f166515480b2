"""What is to be done when this process is gone, however it went: also by kill -9, or without memory.

A child interpreter (`python -I -S`, about 9 MB) runs a script that reads lines from its standard input. When
that ends, which the system brings about at the end of this process, the script executes the last line; an
empty one means that there is nothing to do. The child is in a session of its own, so that an interrupt from
the terminal does not reach it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from runtime.tasks import TaskScope

EXIT_SECONDS = 5.0

_log = logging.getLogger(__name__)


class LastWill:
    """See the module. The child starts with the first will."""

    def __init__(self, tasks: TaskScope, script: Path) -> None:
        self._tasks = tasks
        self._script = script
        self._will = ""
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[None] | None = None

    def write(self, will: str) -> None:
        """This is the will from now on; the former is void."""
        assert "\n" not in will, "a will is one line"
        self._will = will
        if self._process is not None:
            self._tell(self._process)
        elif self._starting is None:
            self._starting = self._tasks.spawn("last will", self._start())

    async def _start(self) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                str(self._script),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("No process can be started to say farewell if this one is killed: %s", error)
            return
        self._tell(self._process)

    def _tell(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        if process.returncode is None:
            process.stdin.write(self._will.encode() + b"\n")

    async def revoke(self) -> None:
        """There is nothing to do any more; the child ends."""
        self._will = ""
        if self._starting is not None:
            await asyncio.wait([self._starting])
            self._starting = None
        process, self._process = self._process, None
        if process is None:
            return
        self._tell(process)
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(EXIT_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
