"""What a broker does by the clock: retention, checkpoints, syncs that rolling left behind, old files.

State is read on the event loop, in one go; threads sync and write the checkpoints. A disk that fails takes
its log directory offline. The intervals are Kafka's: high watermarks every
`replica.high.watermark.checkpoint.interval.ms`, recovery points and log starts every
`log.flush.offset.checkpoint.interval.ms` and `log.flush.start.offset.checkpoint.interval.ms`, retention every
`log.retention.check.interval.ms` after `log.initial.task.delay.ms`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from runtime.blocking import BlockingBusy
from storage import names
from storage.errors import StorageError
from storage.flush_job import FlushJob
from storage.log_dirs import LogDir

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from runtime.system import Env
    from storage.log_manager import LogManager

log = logging.getLogger("ottla.upkeep")

FILES_EVERY_MS = 1_000
MISSING_LOGS_EVERY_MS = 2_000
STEP_SECONDS = 0.002
BUSY_SECONDS = 0.01
SYNCS_EVERY_MS = 1_000
SYNC_CHECKPOINT_EVERY_S = 2.0


class Upkeep:
    """Runs from `start` until the scope of tasks ends."""

    def __init__(self, env: Env, config: BrokerConfig, logs: LogManager) -> None:
        self._env, self._config, self._logs = env, config, logs
        self._next_checkpoint = 0.0

    def also(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        """Have something else done by the clock that is quick."""
        self._every(name, interval_ms, self._on_loop(work))

    def start(self) -> None:
        """Spawn one task for each kind of work."""
        config = self._config
        self._logs.on_flush_job(self._sync_later)
        every = self._every
        every(
            "high watermark checkpoints",
            config.integer("replica.high.watermark.checkpoint.interval.ms"),
            lambda: self._checkpoint(names.HIGH_WATERMARKS),
        )
        every(
            "recovery point checkpoints",
            config.integer("log.flush.offset.checkpoint.interval.ms"),
            lambda: self._checkpoint(names.RECOVERY_POINTS),
        )
        every(
            "log start checkpoints",
            config.integer("log.flush.start.offset.checkpoint.interval.ms"),
            lambda: self._checkpoint(names.LOG_STARTS),
        )
        every("syncs that are due", SYNCS_EVERY_MS, self._on_loop(self._logs.begin_flushes))
        every("old files", FILES_EVERY_MS, self._remove_files)
        every(
            "retention",
            config.integer("log.retention.check.interval.ms"),
            lambda: self._in_steps(self._logs.delete_old_segments()),
            config.integer("log.initial.task.delay.ms"),
        )
        every(
            "old producers",
            config.integer("producer.id.expiration.check.interval.ms"),
            lambda: self._in_steps(self._logs.expire_producers()),
        )

    def _every(
        self,
        name: str,
        interval_ms: int,
        work: Callable[[], Awaitable[None]],
        first_after_ms: int | None = None,
    ) -> None:
        """Every so often; once if the interval is not above 0, as in Kafka."""
        first_ms = interval_ms if first_after_ms is None else first_after_ms

        async def repeat() -> None:
            delay_ms = first_ms
            while True:
                await asyncio.sleep(max(delay_ms, 0) / 1000)
                delay_ms = interval_ms
                try:
                    await work()
                except (OSError, StorageError, BlockingBusy) as error:
                    log.warning("Work on %s failed, the next turn tries again: %s", name, error)
                if interval_ms <= 0:
                    return

        self._env.tasks.spawn(name, repeat())

    def _on_loop(self, work: Callable[[], object]) -> Callable[[], Awaitable[None]]:
        """For work that is quick."""

        async def run() -> None:
            work()

        return run

    def _sync_later(self, job: FlushJob) -> None:
        self._env.tasks.spawn("sync of a log", self._sync(job))

    async def _sync(self, job: FlushJob) -> None:
        while True:
            try:
                await self._env.run_blocking(job.run)
                break
            except OSError as error:
                job.finish(error)
                return
            except BlockingBusy:
                if not job.awaited:
                    return  # nothing was synced: the next job on this log covers it
                await asyncio.sleep(BUSY_SECONDS)
        job.finish()
        now = self._env.clock.monotonic()
        if now >= self._next_checkpoint:  # so that a start after a kill has less to read
            self._next_checkpoint = now + SYNC_CHECKPOINT_EVERY_S
            await self._checkpoint(names.RECOVERY_POINTS)

    async def _checkpoint(self, name: str) -> None:
        for directory in self._logs.online_dirs():
            if name != names.LOG_STARTS or directory.starts_moved:
                await self._write(directory, directory.checkpoint_job(name))

    async def _write(self, directory: LogDir, write: Callable[[], None]) -> None:
        """On a thread: with many dirty pages the fsync of a small file takes up to 150 ms."""
        try:
            await self._env.run_blocking(write)
        except OSError as error:
            directory.checkpoint_failed(error)
        except BlockingBusy as error:
            log.warning("A checkpoint in %s waits for the next turn: %s", directory.path, error)

    async def _in_steps(self, work: Iterable[int]) -> None:
        """For work on every log: the loop gets its turn whenever a few milliseconds have gone."""
        clock = self._env.clock
        until = clock.monotonic() + STEP_SECONDS
        for _ in work:
            if clock.monotonic() >= until:
                await asyncio.sleep(0)
                until = clock.monotonic() + STEP_SECONDS

    async def _remove_files(self) -> None:
        for directory in self._logs.online_dirs():
            forget = directory.forget_gone()
            if forget is not None:
                await self._write(directory, forget)
        for remove in self._logs.take_doomed():
            try:
                await self._env.run_blocking(remove)
            except OSError as error:
                log.warning("Files of a deleted topic or segment stay until the next start: %s", error)
