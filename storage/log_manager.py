"""All logs of a broker: loading, creating, deleting, checkpoints, and a clean end.

Owns the log directories. Start: lock, properties, clean marker taken away, checkpoints read, partitions
loaded. End, in Kafka's order: high watermarks, then every log synced, then recovery points and log
starts, then the marker, then the lock. The periodic parts are plain calls for whoever owns the timer; what
waits for the disk comes as jobs for `run_blocking`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from protocol.uuids import ZERO_UUID
from runtime.clock import Clock
from runtime.entropy import Random
from runtime.files import FileSystem
from storage import names
from storage.errors import CorruptCheckpoint, InconsistentDirectory, StorageFailed, is_full
from storage.flush_job import FlushJob
from storage.future_logs import FutureLogs
from storage.local_log import LocalLog
from storage.log_config import LogConfig
from storage.log_dirs import KRAFT_META, LogDir, check_all, lock_all
from storage.log_loading import finish_loading
from storage.partition_dirs import Found, find_all
from storage.partition_log import PartitionLog
from storage.partition_metadata import read_topic_id
from storage.placement import Placement
from storage.producers.settings import ProducerSettings
from storage.recovery import Loading
from storage.segment_scan import Scans, scan_inline
from storage.tail import BUDGET_BYTES, TailBudget

logger = logging.getLogger(__name__)
DIRTY_BYTES_MAX = 64 << 20
SYNCED_APART_MAX = 100  # logs, of up to eight files each; with more of them the whole volume is synced
ConfigOf = Callable[[str], LogConfig]


class LogManager:
    """See the module. `config_of` gives the effective settings of a topic."""

    def __init__(
        self,
        files: FileSystem,
        clock: Clock,
        random: Random,
        paths: Sequence[str],
        config_of: ConfigOf,
        *,
        tail_bytes: int = BUDGET_BYTES,
    ) -> None:
        self.files = files
        self.clock = clock
        self.random = random
        self._config_of = config_of
        self.dirs = [LogDir(files, files.absolute(path)) for path in paths]
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self.futures = FutureLogs(self)
        self.placement = Placement(self.dirs)
        self.tail_budget = TailBudget(tail_bytes)
        self._moved: list[PartitionLog] = []  # loaded, with the mark of a move that was not seen to its end
        self._deleted: list[tuple[int, LogDir, str]] = []  # due, directory, name
        self.producer_settings = ProducerSettings(clock)
        for directory in self.dirs:
            directory.producer_settings = self.producer_settings
        self.cleaner_runs = False  # then it looks after the retention of compacted logs as well
        self.on_failure: Callable[[LogDir], None] | None = None
        self.unclean = False  # whether a directory had not been closed cleanly: leader epochs must rise

    # --- start ----------------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Make the directories ours, if they are not yet. Raises DirectoryLocked."""
        for directory in self.dirs:
            directory.on_failure = self._failed
        lock_all(self.files, self.dirs)

    def open(self, cluster_id: str, node_id: int, meta_version: int = KRAFT_META) -> None:
        """Lock the directories and make sure that they are ours. New ones get a meta.properties of
        `meta_version`.

        A directory that cannot be used is offline from the start; all of them: StorageFailed. Raises
        DirectoryLocked, InconsistentDirectory, CorruptCheckpoint.
        """
        self.lock()
        check_all(self.dirs, cluster_id, node_id, self.random, meta_version)
        if not self.online_dirs():
            raise StorageFailed("no log directory is usable", offline=True)

    def load(self, scans: Scans | None = None) -> None:
        """Load every partition found. Raises InconsistentDirectory for one that cannot be a partition.

        `scans` reads the segments that have to be read wholly, in this thread if it is not given. Sets
        `unclean` if any directory was not closed cleanly.
        """
        loadings: list[tuple[LogDir, Loading]] = []
        for directory, found in find_all(self.files, self.random, self.online_dirs()):
            try:
                loadings += [(directory, each) for each in self._begin_dir(directory, found)]
            except OSError as error:
                directory.fail(error)
        for log in finish_loading(loadings, scans or scan_inline(self.files), self.clock):
            if names.parse_partition_dir(log.local.directory.rpartition("/")[2]).kind:
                self.futures.register(log)
            else:
                self.register(log)
        for directory in self.online_dirs():
            directory.loaded = True
        if not self.online_dirs():
            raise StorageFailed("no log directory could be loaded", offline=True)
        self._settle_moves()

    def _settle_moves(self) -> None:
        all_online = len(self.online_dirs()) == len(self.dirs)
        try:
            self.futures.settle_loaded(all_online=all_online)
        except (StorageFailed, OSError) as error:
            logger.error("The moves between log directories could not be settled: %s", error)
        for log in self._moved if all_online else ():
            mark = f"{log.local.directory}/{names.MOVED_HERE}"
            if log.directory.logs.get((log.topic, log.partition)) is log and self.files.exists(mark):
                self.files.remove(mark)
        self._moved.clear()

    def _begin_dir(self, directory: LogDir, found: Found) -> list[Loading]:
        now_ms = self.clock.now_ms()
        fresh = not found and not self.files.exists(directory.path_of(names.RECOVERY_POINTS))
        clean = directory.take_clean_marker() or fresh
        if not clean:
            self.unclean = True
            logger.warning("%s was not closed cleanly; recovering", directory.path)
        points = directory.offsets(names.RECOVERY_POINTS)
        starts = directory.offsets(names.LOG_STARTS)
        marks = directory.offsets(names.HIGH_WATERMARKS)
        directory.clean_offsets.load()
        for name in (names.RECOVERY_POINTS, names.LOG_STARTS, names.HIGH_WATERMARKS, names.CLEANER_OFFSETS):
            if not self.files.exists(directory.path_of(name)):
                self.files.open(directory.path_of(name), create=True).close()
        loadings = []
        for name, parsed in found:
            if parsed.kind == "delete":
                self._deleted.append(
                    (now_ms + self._config_of(parsed.topic).file_delete_delay_ms, directory, name)
                )
                continue
            if parsed.kind == "stray":
                continue
            key = (parsed.topic, parsed.partition)
            log = self.log_object(directory, name, key, self._read_topic_id(directory, name), None)
            log.high_watermark = marks.get(key, 0)
            try:
                loading = Loading(
                    log,
                    clean=clean,
                    recovery_point=points.get(key, 0),
                    log_start=starts.get(key, 0),
                    now_ms=now_ms,
                )
            except ValueError as error:
                raise InconsistentDirectory(f"{directory.path_of(name)}: {error}") from error
            loadings.append(loading)
            if loading.has(names.MOVED_HERE):
                self._moved.append(log)
        present = {(parsed.topic, parsed.partition) for _, parsed in found if parsed.kind in ("", "future")}
        directory.note_gone({*points, *starts, *marks} - present)
        return loadings

    def _read_topic_id(self, directory: LogDir, name: str) -> bytes:
        try:
            return read_topic_id(self.files, f"{directory.path}/{name}/{names.PARTITION_METADATA}")
        except CorruptCheckpoint as error:
            logger.warning("%s", error)
            return ZERO_UUID

    def log_object(
        self, directory: LogDir, name: str, key: tuple[str, int], topic_id: bytes, config: LogConfig | None
    ) -> PartitionLog:
        config = config or self._config_of(key[0])
        local = LocalLog(self.files, directory.path_of(name), config, self.random)
        return PartitionLog(directory, local, key[0], key[1], topic_id, self.tail_budget)

    def register(self, log: PartitionLog) -> None:
        """Take in the log of a partition that has none."""
        key = (log.topic, log.partition)
        self._logs[key] = log
        log.directory.logs[key] = log

    # --- lookups --------------------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._logs.values())

    def __len__(self) -> int:
        return len(self._logs)

    def with_futures(self) -> list[PartitionLog]:
        """All logs, and the copies that are on their way to another directory."""
        return [*self._logs.values(), *self.futures]

    def dir_at(self, path: str) -> LogDir | None:
        """The directory that log.dirs calls so."""
        return next((directory for directory in self.dirs if directory.path == path), None)

    def online_dirs(self) -> list[LogDir]:
        return [directory for directory in self.dirs if not directory.offline]

    @property
    def shared_with_kafka(self) -> bool:
        """Whether a directory is an Apache Kafka node's, which may want it back.

        It holds the node's metadata, or a meta.properties that only a Kafka with ZooKeeper writes.
        """
        name = names.partition_dir(names.METADATA_TOPIC, 0)
        return any(
            (each.meta is not None and each.meta.version == 0) or self.files.is_dir(each.path_of(name))
            for each in self.online_dirs()
        )

    # --- creating and deleting ------------------------------------------------------------------------------

    def get_or_create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig | None = None,
        *,
        is_new: bool = True,
    ) -> PartitionLog:
        """The log of a partition, made if missing, in the directory that was chosen for it, else in the one
        with the fewest partitions of those that are not cordoned.

        A log that belongs to an older topic of that name is set aside as stray, and a new one made.
        Raises StorageFailed where no directory takes it, and for a partition that is not new while a
        directory is offline: its log may lie there.
        """
        key = (topic, partition)
        log = self._logs.get(key)
        if log is not None and topic_id != ZERO_UUID and log.topic_id not in (ZERO_UUID, topic_id):
            logger.error("%s is of another topic than %s, it is kept as stray", log.local.directory, topic)
            self.set_aside(topic, partition, "stray")
            log = None
        if log is not None:
            if log.topic_id == ZERO_UUID and topic_id != ZERO_UUID:
                try:
                    log.assign_topic_id(topic_id)
                except OSError as error:
                    log.failed(error, "topic id")
            if config is not None and config is not log.config and config != log.config:
                log.update_config(config)
            return log
        if not is_new and len(self.online_dirs()) < len(self.dirs):
            raise StorageFailed(
                f"the log of {topic}-{partition} is in no directory that is online", offline=False
            )
        failure: OSError | None = None
        for directory in self.placement.places_for(key):
            try:
                log = self._create_in(directory, key, topic_id, config)
                self.placement.done(key)
                return log
            except OSError as error:
                failure = error
                logger.warning("%s does not take %s-%d: %s", directory.path, topic, partition, error)
                if not is_full(error):
                    directory.fail(error)
        raise StorageFailed(
            f"no log directory takes {topic}-{partition}: {failure}", offline=not self.online_dirs()
        )

    def forget_now(self, directory: LogDir, key: tuple[str, int]) -> None:
        """Before a log is made: what the checkpoints say of an earlier one must not count. Raises OSError."""
        if key in directory.gone and (forget := directory.forget_gone()) is not None:
            forget()

    def _create_in(
        self, directory: LogDir, key: tuple[str, int], topic_id: bytes, config: LogConfig | None
    ) -> PartitionLog:
        now_ms = self.clock.now_ms()
        self.forget_now(directory, key)
        name = names.partition_dir(*key)
        self.files.make_dirs(directory.path_of(name))
        log = self.log_object(directory, name, key, topic_id, config)
        log.local.new_segment(0, now_ms)
        if topic_id != ZERO_UUID:
            log.assign_topic_id(topic_id)
        log.opened(0, 0)
        self.register(log)
        return log

    def replace(self, log: PartitionLog) -> None:
        """The partition's log is this one from now on; the other one is in a directory of its own."""
        key = (log.topic, log.partition)
        self._logs[key].directory.forget(key)
        log.directory.gone.pop(key, None)
        log.directory.starts_moved = True
        self.register(log)

    def delete(self, topic: str, partition: int) -> None:
        """Set a partition aside at once; its files go after file.delete.delay.ms. Raises StorageFailed."""
        self.set_aside(topic, partition, "delete")

    def set_aside(self, topic: str, partition: int, kind: str) -> None:
        """Close a log and rename its directory: `delete` ones are removed later, `stray` ones kept."""
        try:
            self.futures.drop(topic, partition)
        finally:
            log = self._logs.pop((topic, partition), None)
            if log is not None:
                log.directory.forget((topic, partition))
                self.rename_away(log, kind)

    def rename_away(self, log: PartitionLog, kind: str) -> None:
        """Close a log that is no partition's any more, and rename its directory. Raises StorageFailed."""
        directory, delay = log.directory, log.config.file_delete_delay_ms
        log.close()
        name = names.suffixed_dir(log.topic, log.partition, self.random.uuid(), kind)
        try:
            log.local.rename_directory(directory.path_of(name))
        except OSError as error:
            directory.fail(error)
            raise StorageFailed(f"{log.name} could not be renamed: {error}", offline=True) from error
        if kind == "delete":
            self._deleted.append((self.clock.now_ms() + delay, directory, name))

    # --- periodic parts -------------------------------------------------------------------------------------

    def take_doomed(self) -> list[Callable[[], None]]:
        """Calls for `run_blocking` that remove files whose delay has passed."""
        now_ms = self.clock.now_ms()
        due = [entry for entry in self._deleted if entry[0] <= now_ms]
        self._deleted = [entry for entry in self._deleted if entry[0] > now_ms]
        jobs: list[Callable[[], None]] = []
        for _, directory, name in due:
            if not directory.offline:
                jobs.append(partial(self.files.remove_tree, directory.path_of(name)))
        for log in self.with_futures():
            if log.local.doomed and not log.directory.offline:
                jobs += [partial(self._remove_files, paths) for paths in log.local.take_doomed(now_ms)]
        return jobs

    def _remove_files(self, paths: list[str]) -> None:
        for path in paths:
            if self.files.exists(path):
                self.files.remove(path)

    def begin_flushes(self, dirty_bytes_max: int = DIRTY_BYTES_MAX) -> int:
        """Have logs synced in the background that are due by flush.ms or hold too many dirty bytes; how many.

        Dirty pages that pile up make later writes wait, and those are made on the event loop.
        """
        now_ms, begun = self.clock.now_ms(), 0
        for log in self.with_futures():
            local = log.local
            dirty = log.active.size - local.flushed_position
            if dirty <= 0:
                local.flush_begun_ms = 0
                continue
            local.flush_begun_ms = local.flush_begun_ms or now_ms
            due = now_ms - local.flush_begun_ms >= log.config.flush_ms or dirty > dirty_bytes_max
            if due and not log.directory.offline:
                local.flush_begun_ms = now_ms
                try:
                    log.directory.background(FlushJob(log, log.end_offset))
                except OSError as error:  # the index could not be written: no space, or worse
                    if not is_full(error):
                        log.directory.fail(error)
                begun += 1
        return begun

    def delete_old_segments(self) -> Iterator[int]:
        """A retention run, log by log, so that the caller can pause; how many segments each log lost.

        Logs that are compacted are left to the cleaner where one runs.
        """
        for log in self.with_futures():
            if log.closed or log.directory.offline or (self.cleaner_runs and log.config.compacted):
                continue
            try:
                yield log.delete_old_segments(self.clock.now_ms())
            except StorageFailed as error:
                logger.warning("%s", error)

    def expire_producers(self) -> Iterator[int]:
        """Forget idle producers of logs whose state is in memory, log by log; how many."""
        for log in list(self._logs.values()):
            if log.has_producers and not log.closed:
                yield log.producers.expire(self.clock.now_ms())

    def persist_log_starts(self) -> None:
        """Write the start offsets of directories where one moved; before DeleteRecords is answered.

        Where that fails the directory is offline, or its `starts_moved` stays.
        """
        self._checkpoint(lambda directory: directory.write_log_starts() if directory.starts_moved else None)

    def checkpoint_high_watermarks(self) -> None:
        self._checkpoint(LogDir.write_high_watermarks)

    def _checkpoint(self, write: Callable[[LogDir], None]) -> None:
        for directory in self.online_dirs():
            try:
                write(directory)
            except OSError as error:
                directory.checkpoint_failed(error)

    # --- end ------------------------------------------------------------------------------------------------

    def close(self, broker_epoch: int = -1) -> None:
        """Stop cleanly: after this a start reads nothing but the ends of the logs."""
        self.checkpoint_high_watermarks()
        for directory in self.dirs:
            if not directory.offline:
                self._close_dir(directory, broker_epoch)
            directory.close_logs()
            try:
                directory.unlock()
            except OSError as error:
                logger.warning("%s: %s", directory.path, error)

    def _close_dir(self, directory: LogDir, broker_epoch: int) -> None:
        complete = directory.loaded
        jobs: list[tuple[PartitionLog, FlushJob]] = []
        for log in directory.every_log():
            try:
                job = log.prepare_close()
            except StorageFailed as error:
                logger.error("%s", error)
                complete = False
                continue
            if job is not None:
                jobs.append((log, job))
        if directory.offline:
            return
        try:
            if len(jobs) <= SYNCED_APART_MAX or not self.files.sync_volume(directory.path):
                for _, job in jobs:
                    job.run()
            for log, _ in jobs:
                log.closed_clean()
            directory.write_recovery_points()
            directory.write_log_starts()
            directory.clean_offsets.write_if_changed()
            if complete:
                marker = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
                self.files.write_atomic(directory.path_of(names.CLEAN_SHUTDOWN), marker.encode())
        except OSError as error:
            directory.fail(error)

    def abandon(self) -> None:
        """Give everything up without writing, as a crash would."""
        for directory in self.dirs:
            directory.close_logs()
            directory.unlock()

    def _failed(self, directory: LogDir) -> None:
        """Called on the thread that met the failure."""
        if self.on_failure is not None:
            self.on_failure(directory)
        else:
            self.stop_serving(directory)

    def stop_serving(self, directory: LogDir) -> None:
        """Give up what is open of a failed directory; where it was the last, the broker has to end."""
        if not directory.loaded:
            return
        logger.warning("Stopping serving logs in dir %s", directory.path)
        logger.warning(
            "Logs for partitions %s are offline and logs for future partitions %s are offline due to "
            "failure on log directory %s",
            ",".join(log.name for log in directory.logs.values()),
            ",".join(log.name for log in directory.futures.values()),
            directory.path,
        )
        for log in list(directory.futures.values()):
            self.futures.forget(log)
            log.close()
        directory.close_logs()
        directory.release()

    def on_flush_job(self, handler: Callable[[FlushJob], None]) -> None:
        """Name who runs the syncs that rolling leaves behind."""
        for directory in self.dirs:
            directory.on_job = handler
