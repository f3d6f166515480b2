"""A log directory: its lock, its `meta.properties`, the logs it holds, and its failure.

`meta.properties` is a Java properties file, version 1: cluster.id, node.id, directory.id; the file of a Kafka
with ZooKeeper stays version 0, which has a broker.id. A failed directory
stays out of service until the broker restarts: its logs refuse everything and nothing is written to it any
more.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text
from runtime.entropy import Random
from runtime.files import FileLock, FileLockHeld, FileSystem
from runtime.latest import Latest
from storage import checkpoints, names
from storage.cleaner.checkpoint import CleanOffsets
from storage.errors import CorruptCheckpoint, DirectoryLocked, InconsistentDirectory, is_full
from storage.producers.settings import ProducerSettings
from storage.properties import parse_properties

if TYPE_CHECKING:
    from storage.flush_job import FlushJob
    from storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)


ZOOKEEPER_META, KRAFT_META = 0, 1
"""Versions of meta.properties: a Kafka with ZooKeeper takes no other than its own."""


@dataclass(slots=True)
class MetaProperties:
    """Who a log directory belongs to."""

    cluster_id: str
    node_id: int
    directory_id: bytes
    version: int = field(default=KRAFT_META, compare=False)


def read_meta(files: FileSystem, path: str) -> MetaProperties | None:
    """The directory's properties; None if there is no file. A missing directory.id reads as zero.

    Raises CorruptCheckpoint for a file that lacks what its version requires.
    """
    if not files.exists(path):
        return None
    try:
        values = parse_properties(files.read_bytes(path).decode("latin-1"))
        version = int(values.get("version", "0"))
        if version not in (0, 1):
            raise ValueError(f"version {version} is not known")
        node_id = int(values["node.id" if version else "broker.id"])
        directory_id = uuid_from_text(values["directory.id"]) if "directory.id" in values else ZERO_UUID
        cluster_id = values["cluster.id"] if version else values.get("cluster.id", "")
    except (ValueError, KeyError) as error:
        raise CorruptCheckpoint(f"{path}: {error}") from error
    return MetaProperties(cluster_id, node_id, directory_id, version)


def write_meta(files: FileSystem, path: str, meta: MetaProperties) -> None:
    escaped = "".join("\\" + c if c in "\\:=#!" else c for c in meta.cluster_id)
    lines = [
        "#",
        f"cluster.id={escaped}",
        f"directory.id={uuid_to_text(meta.directory_id)}",
        f"{'node.id' if meta.version else 'broker.id'}={meta.node_id}",
        f"version={meta.version}",
        "",
    ]
    files.write_atomic(path, "\n".join(lines).encode("latin-1"))


class LogDir:
    """One directory of `log.dirs`."""

    def __init__(self, files: FileSystem, path: str) -> None:
        self.files = files
        self.path = path
        self.offline = False
        self.failure: OSError | None = None
        self.meta: MetaProperties | None = None
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        self.futures: dict[tuple[str, int], PartitionLog] = {}  # copies that are to become logs here
        self.cordoned = False  # takes no new partitions (KIP-1066)
        self.was_clean = False
        self.loaded = False
        self.producer_settings = ProducerSettings()
        self.clean_offsets = CleanOffsets(files, path)
        self.starts_moved = False  # a start offset moved since the last checkpoint of them
        self.on_failure: Callable[[LogDir], None] | None = None
        self.on_job: Callable[[FlushJob], None] | None = None
        self._lock: FileLock | None = None
        self.gone: dict[tuple[str, int], object] = {}  # logs that went and may still be in the checkpoints
        checkpointed = (names.RECOVERY_POINTS, names.LOG_STARTS, names.HIGH_WATERMARKS)
        self._writes = {name: Latest() for name in checkpointed}

    def path_of(self, name: str) -> str:
        return f"{self.path}/{name}"

    def lock(self) -> None:
        """Make the directory ours, if it is not yet. Raises DirectoryLocked, OSError."""
        if self._lock is not None:
            return
        self.files.make_dirs(self.path)
        try:
            self._lock = self.files.lock(self.path_of(names.LOCK))
        except FileLockHeld as error:
            raise DirectoryLocked(
                f"log directory {self.path} is in use by another process: stop that broker, "
                f"or give this one another log.dirs"
            ) from error

    def every_log(self) -> list[PartitionLog]:
        """The logs here and the copies that are to become logs here."""
        return [*self.logs.values(), *self.futures.values()]

    def close_logs(self) -> None:
        """Give up descriptors and memory of all logs, writing nothing."""
        for log in self.every_log():
            if not log.closed:
                log.close()

    def release(self) -> None:
        """Let others have a directory that failed; its disk may refuse even that."""
        try:
            self.unlock()
        except OSError as error:
            logger.warning("%s: %s", self.path, error)

    def unlock(self) -> None:
        """Let others have it; the lock file goes with the lock."""
        if self._lock is not None:
            if self.files.exists(self.path_of(names.LOCK)):
                self.files.remove(self.path_of(names.LOCK))
            self._lock.release()
            self._lock = None

    def take_clean_marker(self) -> bool:
        """Whether the last stop was clean; the marker goes, so that a crash from now on is not."""
        path = self.path_of(names.CLEAN_SHUTDOWN)
        self.was_clean = self.files.exists(path)
        if self.was_clean:
            self.files.remove(path)
            self.files.sync_dir(self.path)  # or a power cut would bring it back
        return self.was_clean

    def check_meta(
        self, cluster_id: str, node_id: int, new_directory_id: bytes, new_version: int = KRAFT_META
    ) -> None:
        """Compare `meta.properties` with who we are; write it where it is missing or lacks a directory id. A
        new one has `new_version`.

        Raises InconsistentDirectory, CorruptCheckpoint, OSError.
        """
        path = self.path_of(names.META_PROPERTIES)
        meta = read_meta(self.files, path)
        if meta is not None:
            if meta.cluster_id and meta.cluster_id != cluster_id:
                raise InconsistentDirectory(
                    f"{self.path} belongs to cluster {meta.cluster_id}, this broker to {cluster_id}"
                )
            if meta.node_id != node_id:
                raise InconsistentDirectory(
                    f"{self.path} belongs to node {meta.node_id}, this broker is node {node_id}"
                )
        self.meta = meta
        if meta is None or meta.directory_id == ZERO_UUID or not meta.cluster_id:
            version = meta.version if meta is not None else new_version
            self.meta = MetaProperties(cluster_id, node_id, new_directory_id, version)
            write_meta(self.files, path, self.meta)

    def fail(self, error: OSError) -> None:
        """Take the directory out of service."""
        if self.offline:
            return
        self.offline = True
        self.failure = error
        logger.error("log directory %s is offline until the broker restarts: %s", self.path, error)
        if self.on_failure is not None:
            self.on_failure(self)

    def checkpoint_failed(self, error: OSError) -> None:
        """A checkpoint was not replaced: on a full disk the old one stays, which is safe."""
        if is_full(error):
            logger.warning("%s: a checkpoint could not be written: %s", self.path, error)
        else:
            self.fail(error)

    def background(self, job: FlushJob) -> None:
        """Have a sync done elsewhere; without a helper for it the next flush will do it."""
        if self.on_job is not None:
            self.on_job(job)

    def offsets(self, name: str) -> dict[tuple[str, int], int]:
        """A checkpoint of this directory; a damaged one is reported and read as empty."""
        try:
            return checkpoints.read_offsets(self.files, self.path_of(name))
        except CorruptCheckpoint as error:
            logger.warning("%s; it is read as empty", error)
            return {}

    def forget(self, key: tuple[str, int]) -> None:
        """The log is no longer here. The checkpoints may still name it, until `forget_gone`."""
        self.logs.pop(key, None)
        self.clean_offsets.forget(key)
        self.gone[key] = object()

    def forget_future(self, key: tuple[str, int]) -> None:
        """The copy is no longer here; see `forget`."""
        self.futures.pop(key, None)
        self.gone[key] = object()

    def note_gone(self, keys: set[tuple[str, int]]) -> None:
        """The checkpoints name these, and they are not here: a crash kept them from being rewritten."""
        for key in sorted(keys):
            self.gone[key] = object()

    def forget_gone(self) -> Callable[[], None] | None:
        """A call, for any thread, that rewrites the checkpoints without the logs that went; None if none did.

        A partition of that name that is made later must not start with the offsets of the old one.
        """
        if not self.gone:
            return None
        gone = list(self.gone.items())
        jobs = [self.checkpoint_job(name) for name in self._writes]
        if self.clean_offsets.changed:
            jobs.append(self.clean_offsets.write_job())

        def write() -> None:
            for job in jobs:
                job()
            for key, when in gone:
                if self.gone.get(key) is when:
                    del self.gone[key]

        return write

    def checkpoint_job(self, name: str) -> Callable[[], None]:
        """Read a checkpoint's contents now; the call writes them, on any thread, unless newer ones were.

        `name` is that of the recovery points, the log starts or the high watermarks.
        """
        path, logs = self.path_of(name), [*self.logs.items(), *self.futures.items()]
        if name == names.RECOVERY_POINTS:
            offsets = {key: log.recovery_point for key, log in logs}
        elif name == names.HIGH_WATERMARKS:
            offsets = {key: log.high_watermark for key, log in logs}
        else:  # only logs whose start is not simply that of their first segment have an entry
            offsets = {
                key: log.start_offset
                for key, log in logs
                if log.start_offset > log.local.segments.first.base_offset
            }
            self.starts_moved = False

        def write() -> None:
            try:
                checkpoints.write_offsets(self.files, path, offsets)
            except OSError:
                self.starts_moved = self.starts_moved or name == names.LOG_STARTS
                raise

        return self._writes[name].claim(write)

    def write_recovery_points(self) -> None:
        self.checkpoint_job(names.RECOVERY_POINTS)()

    def write_log_starts(self) -> None:
        self.checkpoint_job(names.LOG_STARTS)()

    def write_high_watermarks(self) -> None:
        self.checkpoint_job(names.HIGH_WATERMARKS)()


def lock_all(files: FileSystem, dirs: Sequence[LogDir]) -> None:
    """Make directories ours; one that cannot be used is offline. Raises DirectoryLocked.

    A new broker makes its directories. Later one that is missing is rather a disk that is not mounted, and to
    begin there anew would be to lose what is on it.
    """
    used = any(files.exists(each.path_of(names.META_PROPERTIES)) for each in dirs)
    for directory in dirs:
        try:
            if used and not files.exists(directory.path):
                reason = "it is missing: mount its disk, or make the directory if it is a new one"
                raise FileNotFoundError(errno.ENOENT, reason, directory.path)
            directory.lock()
        except OSError as error:
            directory.fail(error)


def check_all(
    dirs: Sequence[LogDir], cluster_id: str, node_id: int, random: Random, new_version: int = KRAFT_META
) -> None:
    """Compare the `meta.properties` of all directories that are online with who we are, and with each other.

    Raises InconsistentDirectory, CorruptCheckpoint.
    """
    seen: dict[bytes, str] = {}
    for directory in dirs:
        if directory.offline:
            continue
        try:
            directory.check_meta(cluster_id, node_id, random.uuid(), new_version)
        except OSError as error:
            directory.fail(error)
            continue
        assert directory.meta is not None
        other = seen.setdefault(directory.meta.directory_id, directory.path)
        if other != directory.path:
            raise InconsistentDirectory(f"{other} and {directory.path} have the same directory.id")
