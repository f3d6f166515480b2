"""The way from the controller to each broker: first in, first out, one request in flight, never given up.

A request that gets no answer is sent again after a pause until it is answered or the broker is dropped from
the cluster. Brokers can therefore count on seeing all changes in order; what waits for a broker that does not
answer is bounded by the time until its session ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from replication.cluster.channel import Channel, Channels
from replication.controller.batches import ControlRequest
from runtime.tasks import TaskScope

RETRY_PAUSE_S: Final = 0.1

_log = logging.getLogger(__name__)

Answered = Callable[[ControlRequest, Any], None]


class ControlChannels:
    """The lines of one controller epoch. `answered(request, response)` is called for each answer."""

    def __init__(self, channels: Channels, tasks: TaskScope, answered: Answered) -> None:
        self._channels = channels
        self._tasks = tasks
        self._answered = answered
        self._lines: dict[int, _Line] = {}
        self._closed = False

    def send(self, requests: Sequence[ControlRequest]) -> None:
        """Put the requests at the end of the lines of their brokers."""
        if self._closed:
            return
        for request in requests:
            line = self._lines.get(request.broker_id)
            if line is None:
                channel = self._channels.to(request.broker_id, "control")
                line = self._lines[request.broker_id] = _Line(channel, self._answered)
                line.task = self._tasks.spawn(f"control-{request.broker_id}", line.run())
            line.add(request)

    def drop(self, broker_id: int) -> None:
        """The broker is gone: what waits for it is not sent any more."""
        line = self._lines.pop(broker_id, None)
        if line is not None:
            line.end()

    def close(self) -> None:
        """Drop all; nothing is sent from now on."""
        self._closed = True
        for broker_id in list(self._lines):
            self.drop(broker_id)


class _Line:
    """The requests that wait for one broker."""

    def __init__(self, channel: Channel, answered: Answered) -> None:
        self.task: asyncio.Task[None] | None = None
        self._channel = channel
        self._answered = answered
        self._waiting: deque[ControlRequest] = deque()
        self._added = asyncio.Event()
        self._ended = False

    def add(self, request: ControlRequest) -> None:
        self._waiting.append(request)
        self._added.set()

    def end(self) -> None:
        """Stop after the step that runs now; an answer that still comes is not told."""
        self._ended = True
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        try:
            while True:
                while not self._waiting:
                    self._added.clear()
                    await self._added.wait()
                request = self._waiting[0]
                response = await self._ask(request)
                self._waiting.popleft()
                if not self._ended:
                    self._answered(request, response)
        finally:
            await self._channel.close()

    async def _ask(self, request: ControlRequest) -> Any:
        told = False
        while True:
            try:
                return await self._channel.ask(request.request, request.version)
            except OSError as lost:
                if not told:
                    _log.warning(
                        "No answer from broker %d to the controller, which tries on: %s",
                        request.broker_id,
                        lost,
                    )
                told = True
                await asyncio.sleep(RETRY_PAUSE_S)
