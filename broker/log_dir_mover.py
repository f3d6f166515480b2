"""Moving partitions between log directories (KIP-113): what AlterReplicaLogDirs asks for, and its work.

A few tasks (num.replica.alter.log.dirs.threads, by default one for each log directory) share the moves,
each for a moment at a time. Reading and checking is done on threads, appends to the copy on the loop, a few
milliseconds at a time. All together keep to replica.alter.log.dirs.io.max.bytes.per.second. A partition that
moves is not cleaned. Moves that a stop or a crash interrupted go on with the next start.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication.log_dir_moves import Move
from replication.partition import Partition
from runtime.blocking import BlockingBusy
from storage import names
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from replication.replica_manager import ReplicaManager
    from runtime.system import Env
    from storage.cleaner.manager import CleanerManager
    from storage.log_manager import LogManager

log = logging.getLogger("ottla.moves")

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
THREADS = "num.replica.alter.log.dirs.threads"
SLICE_SECONDS = 1.0
APPEND_SECONDS, LOAD_SECONDS = 0.003, 0.006  # about what one piece may take, on the loop and on a thread
PIECE_BYTES_MIN, PIECE_BYTES_MAX = 16 << 10, 1 << 20
PAUSE_SECONDS = 0.25
TRIES = 5  # changes-over of a log that is never idle; then it is made to wait for one sync


class LogDirMover:
    """See the module."""

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        logs: LogManager,
        replicas: ReplicaManager,
        cleaner: CleanerManager,
    ) -> None:
        self._env, self._config, self._logs = env, config, logs
        self._replicas, self._cleaner = replicas, cleaner
        self._queue: deque[Move] = deque()
        self._workers = 0
        self._piece_bytes = 4 * PIECE_BYTES_MIN
        self._rate_before = self._rate()
        self._free_at = 0.0  # when the bytes copied so far are paid for
        self._follow_cordons(frozenset({"cordoned.log.dirs"}))
        config.subscribe(self._follow_cordons)

    def _rate(self) -> float:
        """Bytes a second; Kafka's default means no limit."""
        rate = self._config.integer(RATE)
        return float("inf") if rate >= (1 << 63) - 1 else float(max(rate, 1))

    def _follow_cordons(self, changed: frozenset[str]) -> None:
        if "cordoned.log.dirs" in changed:
            named = self._config.names("cordoned.log.dirs")
            paths = [self._env.files.absolute(path) for path in named]
            for directory in self._logs.dirs:
                directory.cordoned = directory.path in paths or "*" in named

    # --- requests -------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """At the start: go on with what was under way, and drop copies of partitions that are no more."""
        for future in list(self._logs.futures):
            found = self._replicas.find(future.topic, future.partition)
            try:
                if isinstance(found, Partition):
                    self._begin(Move(found, future, self._logs, self._env.clock))
                elif found == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._logs.shared_with_kafka:
                    self._logs.futures.drop(future.topic, future.partition)
            except StorageError as error:
                log.warning("The move of %s does not go on: %s", future.name, error)

    def alter(self, topic: str, index: int, path: str) -> ErrorCode:
        """Have a partition's log in the directory `path`, now or, for one that is to come, when it is made.

        Kafka's errors: 17 name too long for a copy, 57 no such directory, 56 it or the partition is offline,
        39 it is cordoned, 9 the replica is on another broker, 3 there is no such partition.
        """
        try:
            error = self._alter(topic, index, path)
        except StorageError as failed:
            log.warning("Unable to alter log dirs for %s-%d: %s", topic, index, failed)
            return failed.error
        if error != ErrorCode.NONE:
            log.warning("Unable to alter log dirs for %s-%d to %s: %s", topic, index, path, error.name)
        return error

    def _alter(self, topic: str, index: int, path: str) -> ErrorCode:
        logs, futures = self._logs, self._logs.futures
        if len(names.future_dir(topic, index, ZERO_UUID)) > names.NAME_LENGTH_MAX:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        directory = logs.dir_at(path)
        if directory is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if directory.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if directory.cordoned:
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        found = self._replicas.find(topic, index)
        if found == ErrorCode.KAFKA_STORAGE_ERROR or (isinstance(found, Partition) and found.offline):
            return ErrorCode.KAFKA_STORAGE_ERROR
        future = futures.get(topic, index)
        if future is not None and future.directory is not directory:
            futures.drop(topic, index)
            future = None
        if not isinstance(found, Partition):
            logs.placement.choose(topic, index, directory)
            missing = found == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if missing else ErrorCode.REPLICA_NOT_AVAILABLE
        if found.log.directory is directory:
            log.info("Current log directory %s is same as requested log dir", path)
        elif future is None:
            self._begin(Move(found, futures.create(found.log, directory), logs, self._env.clock))
        return ErrorCode.NONE

    # --- work -----------------------------------------------------------------------------------------------

    def _begin(self, move: Move) -> None:
        self._cleaner.pause(move.key)
        log.info("Moving %s to %s", move.partition, move.future.directory.path)
        self._queue.append(move)
        if self._workers < self._limit():
            self._workers += 1
            self._env.tasks.spawn(f"moves between log directories {self._workers}", self._work())

    def _limit(self) -> int:
        chosen = self._config.integer(THREADS) if self._config.is_set(THREADS) else len(self._logs.dirs)
        return max(chosen, 1)

    async def _work(self) -> None:
        try:
            while self._queue:
                move = self._queue.popleft()
                if await self._goes_on(move):
                    self._queue.append(move)
                else:
                    self._cleaner.resume(move.key)
        finally:
            self._workers -= 1

    async def _goes_on(self, move: Move) -> bool:
        """Work on a move for a moment; whether it has to go on."""
        try:
            return await self._advance(move)
        except BlockingBusy:
            await asyncio.sleep(PAUSE_SECONDS)
        except StorageError as error:
            if move.is_over():
                log.warning("The move of %s ended with its disk: %s", move.partition, error)
            elif error.retriable:  # a full disk
                log.warning("The move of %s waits: %s", move.partition, error)
                await asyncio.sleep(4 * PAUSE_SECONDS)
            else:
                log.error("%s cannot be moved: %s", move.partition, error)
                return False
        return not move.is_over()

    async def _advance(self, move: Move) -> bool:
        clock = self._env.clock
        until = clock.monotonic() + SLICE_SECONDS
        while not move.is_over() and clock.monotonic() < until:
            piece = move.take(self._next_bytes())
            if piece is None:
                return not await self._change_over(move) and not move.is_over()
            begun = clock.monotonic()
            try:
                await self._env.run_blocking(piece.load)
            except OSError as error:
                if not move.is_over():
                    move.partition.log.failed(error, "read")
            except ValueError:
                continue  # its segment was removed meanwhile
            finally:
                piece.release()
            if move.is_over():
                break
            loaded = clock.monotonic()
            move.append(piece)
            self._adapt(loaded - begun, clock.monotonic() - loaded)
            await self._pause(piece.length)
            if move.is_near() and not move.is_over() and await self._change_over(move):
                return False
        return not move.is_over()

    def _next_bytes(self) -> int:
        return max(1, min(self._piece_bytes, int(min(self._rate(), 1 << 40)) // 2))

    def _adapt(self, load_seconds: float, append_seconds: float) -> None:
        """Learn how much may be copied at once: it is the batches that cost time, in threads too, which hold
        the interpreter.
        """
        if append_seconds > APPEND_SECONDS or load_seconds > LOAD_SECONDS:
            self._piece_bytes = max(PIECE_BYTES_MIN, self._piece_bytes // 2)
        elif append_seconds < APPEND_SECONDS / 3 and load_seconds < LOAD_SECONDS / 3:
            self._piece_bytes = min(PIECE_BYTES_MAX, self._piece_bytes * 2)

    async def _pause(self, count: int) -> None:
        """So many bytes were copied: wait as the rate wants, which may be changed meanwhile."""
        clock, rate = self._env.clock, self._rate()
        if rate != self._rate_before:
            self._rate_before, self._free_at = rate, 0.0
        self._free_at = max(self._free_at, clock.monotonic()) + count / rate
        await asyncio.sleep(0)
        while True:
            left = self._free_at - clock.monotonic()
            if left <= 0 or self._rate() != rate:
                return
            await asyncio.sleep(min(left, PAUSE_SECONDS))

    async def _change_over(self, move: Move) -> bool:
        """The copy has all: sync it and let it take the partition's place; whether it did."""
        job, write = move.prepare()

        def run() -> None:
            job.run()
            write()

        try:
            await self._env.run_blocking(run)
        except OSError as error:
            if not move.is_over():
                job.finish(error)
                move.future.failed(error, "flush")
            return False
        job.finish()
        if move.is_over():
            return False
        move.tries += 1
        await self._idle(move)
        if move.is_over() or not move.catch_up():
            return False
        if not move.ready() and not (move.tries >= TRIES and move.insist()):
            return False
        settle = move.finish()
        self._replicas.changed()
        await self._settle(move, settle)
        return True

    async def _idle(self, move: Move) -> None:
        """Give the turn that is open a chance to write what it has staged."""
        for _ in range(TRIES):
            if not move.partition.log.staged:
                return
            await asyncio.sleep(0)

    async def _settle(self, move: Move, settle: Callable[[], None]) -> None:
        try:
            await self._env.run_blocking(settle)
        except OSError as error:
            move.future.directory.fail(error)
        except BlockingBusy:
            pass  # the next start takes the mark away
