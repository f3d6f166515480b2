"""The log cleaner of a broker: tasks that choose a log, have it cleaned in a worker process, and rest.

Each of `log.cleaner.threads` tasks has a worker of its own, which keeps the map of a pass between its calls
and shares the memory and the rate of all. A change of any `log.cleaner.*` value of the broker breaks off what
is under way and begins anew with the new values, as in Kafka. After each attempt retention runs over the
compacted logs, which it must not do while one of them is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from runtime.blocking import BlockingBusy
from runtime.tasks import TaskScope
from runtime.workers import WorkerCrashed, Workers
from storage.cleaner import session
from storage.cleaner.choice import DirtyLog
from storage.cleaner.manager import CleanerManager, CleanerSettings, Cleaning, CleaningAborted
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from runtime.system import Env
    from storage.log_manager import LogManager

log = logging.getLogger("ottla.cleaner")

RECONFIGURABLE = frozenset(
    {
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
    }
)
STEP_SECONDS = 0.002
LOOK_EVERY_SECONDS = 0.25  # whether a pass in a worker may go on
_T = TypeVar("_T")


class Cleaner:
    """Runs from `start` until the scope of tasks ends."""

    def __init__(self, env: Env, config: BrokerConfig, logs: LogManager) -> None:
        self._env, self._config, self._logs = env, config, logs
        self.manager = CleanerManager(logs, env.clock.now_ms)
        self._tasks: list[asyncio.Task[None]] = []
        # Calls of workers end with the task that waits for them, not on their own.
        self._calls = TaskScope(env.loop, "log cleaner's calls")

    def start(self) -> None:
        """Nothing happens with log.cleaner.enable=false: then retention treats compacted logs as well."""
        if self._config.flag("log.cleaner.enable"):
            self._logs.cleaner_runs = True
            self._config.subscribe(self._changed)
            self._spawn()

    def _changed(self, names: frozenset[str]) -> None:
        if not names.isdisjoint(RECONFIGURABLE):
            log.info("Settings of the log cleaner changed; it starts anew")
            for task in self._tasks:
                task.cancel()
            self._spawn()

    def _spawn(self) -> None:
        before, self._tasks = self._tasks, []
        for number in range(max(self._config.integer("log.cleaner.threads"), 0)):
            name = f"log cleaner {number}"
            self._tasks.append(self._env.tasks.spawn(name, self._run(number, before)))

    def settings(self) -> CleanerSettings:
        """What one of the threads may take."""
        config = self._config
        threads = max(config.integer("log.cleaner.threads"), 1)
        return CleanerSettings(
            memory_bytes=min(config.integer("log.cleaner.dedupe.buffer.size") // threads, (1 << 31) - 1),
            load_factor=config.number("log.cleaner.io.buffer.load.factor"),
            window_bytes=config.integer("log.cleaner.io.buffer.size") // threads // 2,
            bytes_per_second=config.number("log.cleaner.io.max.bytes.per.second") / threads,
        )

    async def _run(self, thread: int, before: list[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)  # their workers end first
        workers = Workers(1)
        try:
            while True:
                if not await self._clean_next(workers, thread):
                    await workers.close_idle()
                    await asyncio.sleep(max(self._config.integer("log.cleaner.backoff.ms"), 1) / 1000)
        finally:
            await self._end(workers)

    async def _end(self, workers: Workers) -> None:
        """Also for a task that is cancelled once more meanwhile: no process may be left behind."""
        ending = self._calls.spawn("end of a worker", workers.aclose())
        while not ending.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait((ending,))

    async def _clean_next(self, workers: Workers, thread: int) -> bool:
        """Clean the dirtiest log, then let retention run; whether there was one."""
        try:
            dirty = self.manager.choose([each async for each in self._paced(self.manager.candidates())])
        except OSError as error:
            log.warning("No log could be chosen for cleaning: %s", error)
            return False
        good = dirty is not None and await self._clean(workers, thread, dirty)
        async for each in self._paced(self.manager.retained_logs()):
            try:
                each.delete_old_segments(self._env.clock.now_ms())
            except StorageError as error:
                log.warning("%s", error)
        await self._write_checkpoints()
        return good

    async def _paced(self, steps: Iterable[_T]) -> AsyncIterator[_T]:
        """Thousands of logs must not hold up the loop: clients get their turn every few milliseconds."""
        monotonic = self._env.clock.monotonic
        begun = monotonic()
        for step in steps:
            yield step
            if monotonic() - begun > STEP_SECONDS:
                await asyncio.sleep(0)
                begun = monotonic()

    async def _clean(self, workers: Workers, thread: int, dirty: DirtyLog) -> bool:
        """Whether the log is clean now."""
        manager, cleaning = self.manager, None
        begun = self._env.clock.monotonic()
        try:
            cleaning = manager.begin(dirty, self.settings())
            manager.mapped(cleaning, await self._watched(workers, cleaning, session.begin, cleaning.request))
            cleaning.stats.map_seconds = self._env.clock.monotonic() - begun
            for sources in cleaning.groups:
                last = manager.last_records(cleaning)
                done = await self._watched(workers, cleaning, session.clean_group, sources, last)
                await self._env.run_blocking(manager.swap_in(cleaning, sources, done))
            cleaning.stats.seconds = self._env.clock.monotonic() - begun
            manager.finish(cleaning, thread)
            await workers.call(session.end)
        except CleaningAborted as why:
            log.info("A cleaning was broken off: %s", why)
        except WorkerCrashed as error:
            log.warning("Cleaning of %s was broken off: %s", dirty.log.name, error)
        except BlockingBusy as error:
            log.warning("Cleaning of %s waits for the next turn: %s", dirty.log.name, error)
        except (StorageError, OSError, ValueError, RuntimeError) as error:
            self._failed(dirty, error)
        else:
            return True
        finally:
            if cleaning is not None:
                manager.abandon(cleaning)
            manager.done(dirty.log)
        return False

    def _failed(self, dirty: DirtyLog, error: Exception) -> None:
        each = dirty.log
        if each.closed or each.directory.offline:
            log.info("Cleaning of %s ended with its log: %s", each.name, error)
        else:
            self.manager.set_aside(each, error)

    async def _watched(
        self, workers: Workers, cleaning: Cleaning, function: Callable[..., _T], *args: object
    ) -> _T:
        """A call of the worker that is given up as soon as the pass must not go on."""
        call = self._calls.spawn(function.__name__, _outcome(workers.call(function, *args)))
        try:
            while not call.done():
                self.manager.check(cleaning)
                await asyncio.wait((call,), timeout=LOOK_EVERY_SECONDS)
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait((call,))
        outcome = call.result()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    async def _write_checkpoints(self) -> None:
        for directory in self._logs.online_dirs():
            if directory.clean_offsets.changed:
                try:
                    await self._env.run_blocking(directory.clean_offsets.write_job())
                except OSError as error:
                    directory.checkpoint_failed(error)
                except BlockingBusy as error:
                    log.warning("The cleaner's checkpoint waits for the next turn: %s", error)


async def _outcome(call: Coroutine[object, object, _T]) -> _T | BaseException:
    """What a call ends in, as a value: a task that fails would be reported by its scope."""
    [outcome] = await asyncio.gather(call, return_exceptions=True)
    return outcome
