"""Tasks with names, an owner and an order of ending.

The event loop keeps only weak references to tasks and `asyncio.TaskGroup` cancels in the order of a set.
A `TaskScope` keeps its tasks in the order in which they were spawned, reports those that fail, and ends
them one after the other, newest first, because newer ones tend to build on older ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class TaskScope:
    """The tasks of one component. A task that fails is logged with its name; the others go on."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.name = name
        self._loop = loop
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Start a task that ends with the scope at the latest. RuntimeError once the scope is closed."""
        if self._closed:
            coroutine.close()
            raise RuntimeError(f"task {name}: scope {self.name} is closed")
        task = self._loop.create_task(coroutine, name=f"{self.name}/{name}")
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("Task %s failed", task.get_name(), exc_info=error)

    async def aclose(self) -> None:
        """Cancel and await the tasks one by one, newest first; nothing can be spawned afterwards.

        A task that calls this on its own scope is left running.
        """
        self._closed = True
        own = asyncio.current_task()
        while remaining := [task for task in self._tasks if task is not own]:
            task = remaining[-1]
            task.cancel()
            await asyncio.wait([task])
            self._tasks.pop(task, None)
