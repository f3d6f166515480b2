"""One start of one broker as a child process, seen from the command that supervises it.

The other end of the pipes is `ottla.brokers.child`. The child writes its log lines to our standard error by
itself: a supervisor that is held up (Ctrl-Z) holds up no broker.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from typing import Any

from ottla.brokers.plan import BrokerPlan
from ottla.paths import child_command, child_environment


class BrokerProcess:
    """See the module; made by `start`."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, plan: BrokerPlan, node_ids: Sequence[int]) -> BrokerProcess:
        """The process exists; its broker does not serve yet. `node_ids` are all brokers. Raises OSError."""
        process = await asyncio.create_subprocess_exec(
            *child_command("ottla.brokers.child", f"broker {plan.node_id}"),
            stdin=PIPE,
            stdout=PIPE,
            env=child_environment(),
            start_new_session=sys.platform != "win32",  # Ctrl-C is for us, who stop all brokers in good order
        )
        started = cls(process)
        first = {"node_id": plan.node_id, "settings": dict(plan.settings), "node_ids": list(node_ids)}
        started._tell(first)
        return started

    @property
    def pid(self) -> int:
        return self._process.pid

    async def said(self) -> AsyncIterator[dict[str, Any]]:
        """What the child says, until it ends; see there. To be read by one only."""
        assert self._process.stdout is not None
        while (line := await self._process.stdout.readline()).endswith(b"\n"):
            yield json.loads(line)

    def wind_down(self) -> None:
        """It is to elect no leaders any more, and says when that is so."""
        self._tell({"wind_down": True})

    def stop(self) -> None:
        """In good order, or at once if it is still starting."""
        self._tell({"stop": True})

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()

    async def ended(self) -> int:
        """Its exit code; negative is the number of a signal."""
        return await self._process.wait()

    def _tell(self, command: dict[str, Any]) -> None:
        """One that has ended does not hear it."""
        assert self._process.stdin is not None
        if not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
