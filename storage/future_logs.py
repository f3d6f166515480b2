"""Copies of partitions that are on their way to another log directory (KIP-113), and the change-over.

A copy lies in `TOPIC-PARTITION.ID-future` of its new log directory, and is a log of its own until it has all
that the partition's log has. Then two renames make it the partition's: the copy's directory gets the plain
name, and after that the old one is renamed `-delete`. Before, everything in the copy is synced and the file
`moved-here` laid into it: of two directories of one partition, which a crash between the renames leaves, the
one with that file has all that the other has, and stays.

Kafka's order of renames is the same, but its start refuses such a pair. A copy whose partition is nowhere,
although every log directory is there, becomes the partition: it is what is left of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from protocol.uuids import ZERO_UUID
from storage import names
from storage.append import NOT_HELD
from storage.errors import StorageFailed, is_full
from storage.flush_job import FlushJob
from storage.tail import Tail, TailBudget

if TYPE_CHECKING:
    from storage.log_dirs import LogDir
    from storage.log_manager import LogManager
    from storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)
Key = tuple[str, int]


class FutureLogs:
    """The copies of a log manager, at most one of each partition."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self._logs: dict[Key, PartitionLog] = {}
        self._budget = TailBudget(0)  # nobody reads a copy

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._logs.values())

    def __len__(self) -> int:
        return len(self._logs)

    def register(self, log: PartitionLog) -> None:
        """Take in a copy that was made or loaded."""
        key = (log.topic, log.partition)
        log.tail = Tail(self._budget, log.end_offset, log.position)
        log.sync_later = True
        self._logs[key] = log
        log.directory.futures[key] = log

    def create(self, current: PartitionLog, directory: LogDir) -> PartitionLog:
        """An empty copy that begins where `current` does. Raises StorageFailed."""
        manager, key = self._manager, (current.topic, current.partition)
        name = names.future_dir(*key, manager.random.uuid())
        try:
            manager.forget_now(directory, key)
            manager.files.make_dirs(directory.path_of(name))
            log = manager.log_object(directory, name, key, current.topic_id, current.config)
            log.local.new_segment(current.start_offset, manager.clock.now_ms())
            if current.topic_id != ZERO_UUID:
                log.assign_topic_id(current.topic_id)
        except OSError as error:
            if not is_full(error):
                directory.fail(error)
            raise StorageFailed(
                f"no copy of {current.name} in {directory.path}: {error}", offline=directory.offline
            ) from error
        log.opened(current.start_offset, current.start_offset)
        self.register(log)
        return log

    def drop(self, topic: str, partition: int) -> None:
        """Give a copy up; its files go after file.delete.delay.ms. Raises StorageFailed."""
        log = self._logs.pop((topic, partition), None)
        if log is not None:
            log.directory.forget_future((topic, partition))
            self._manager.rename_away(log, "delete")

    def forget(self, log: PartitionLog) -> None:
        """The copy's log directory failed: it is left as it lies."""
        self._logs.pop((log.topic, log.partition), None)
        log.directory.futures.pop((log.topic, log.partition), None)

    def prepare_job(self, log: PartitionLog) -> tuple[FlushJob, Callable[[], None]]:
        """What has to be on the disk before `replace_current`: a flush, and a call for the same thread behind
        it. Raises OSError.
        """
        files, marker = self._manager.files, f"{log.local.directory}/{names.MOVED_HERE}"
        directory, job = log.directory, FlushJob(log, log.end_offset)
        starts = directory.checkpoint_job(names.LOG_STARTS)

        def write() -> None:
            if not files.exists(marker):
                files.write_atomic(marker, b"")
            starts()

        return job, write

    def replace_current(self, topic: str, partition: int) -> Callable[[], None]:
        """Make the copy the partition's log and the old one go. The copy has all of it, nothing is staged.

        The call returned makes the renames durable, on any thread; then the manager may forget about them.
        Raises StorageFailed: then the copy's log directory is offline, and the old log still the partition's.
        """
        manager, key = self._manager, (topic, partition)
        future, current = self._logs[key], manager.get(topic, partition)
        assert current is not None
        assert current.next_offset == current.end_offset <= future.end_offset
        source, destination = current.directory, future.directory
        logger.info("Attempting to replace current log %s with %s", current.local.directory, future.name)
        try:
            _rename(future, destination.path_of(names.partition_dir(*key)))
        except OSError as error:
            destination.fail(error)
            raise StorageFailed(f"{future.name} could not be renamed: {error}", offline=True) from error
        self.forget(future)
        _take_over(future, current, manager.tail_budget)
        clean = source.clean_offsets.get(key)
        manager.replace(future)
        if clean is not None:
            destination.clean_offsets.set(key, clean)
        try:
            manager.rename_away(current, "delete")
        except StorageFailed as error:
            logger.error("%s", error)
        else:
            logger.info(
                "The current replica is successfully replaced with the future replica for %s", future.name
            )
        files, marker = manager.files, f"{future.local.directory}/{names.MOVED_HERE}"
        old_gone = not source.offline

        def settle() -> None:
            files.sync_dir(destination.path)
            if old_gone:
                files.sync_dir(source.path)
                if files.exists(marker):
                    files.remove(marker)

        return settle

    # --- at the start ---------------------------------------------------------------------------------------

    def settle_loaded(self, *, all_online: bool) -> None:
        """After loading: drop copies of an older topic, and make those the partition that are all there is.

        So are those that were about to take over, if they have no less: a power cut may have taken from the
        log what it had not synced, and they had. Raises StorageFailed, OSError.
        """
        for log in list(self._logs.values()):
            current = self._manager.get(log.topic, log.partition)
            if current is None:
                if all_online:
                    self._promote(log)
            elif current.directory is log.directory or _of_other_topics(log, current):
                self.drop(log.topic, log.partition)
            elif log.end_offset >= current.end_offset and self._was_complete(log):
                log.move_start(current.start_offset)
                self.replace_current(log.topic, log.partition)()

    def _was_complete(self, log: PartitionLog) -> bool:
        return self._manager.files.exists(f"{log.local.directory}/{names.MOVED_HERE}")

    def _promote(self, log: PartitionLog) -> None:
        manager = self._manager
        logger.warning("%s is all that is left of %s, and becomes it", log.local.directory, log.name)
        try:
            _rename(log, log.directory.path_of(names.partition_dir(log.topic, log.partition)))
        except OSError as error:
            log.directory.fail(error)
            raise StorageFailed(f"{log.name} could not be renamed: {error}", offline=True) from error
        self.forget(log)
        log.sync_later = False
        log.tail = Tail(manager.tail_budget, log.end_offset, log.position)
        manager.register(log)
        manager.unclean = True  # readers may have seen more of it


def _of_other_topics(log: PartitionLog, other: PartitionLog) -> bool:
    return ZERO_UUID not in (log.topic_id, other.topic_id) and log.topic_id != other.topic_id


def _rename(log: PartitionLog, path: str) -> None:
    """Give the open log's directory another name; what waits in memory for its files is written before."""
    log.active.write_indexes()
    log.local.rename_directory(path)
    log.renamed()


def _take_over(future: PartitionLog, current: PartitionLog, budget: TailBudget) -> None:
    """What is known of the partition and not in its files."""
    future.failures = current.failures
    future.hold_from = NOT_HELD
    future.sync_later = current.sync_later
    future.tail = Tail(budget, future.end_offset, future.position)
    if current.has_producers and current.end_offset == future.end_offset:
        future.producers.take_over(current.producers)
    future.set_high_watermark(current.high_watermark)
