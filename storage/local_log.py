"""The files of one log: its segments, rolling, cutting, setting files aside, syncing.

Knows nothing of high watermarks, producers or leaders; `partition_log.py` puts those around it. Files that
are no longer needed are renamed `.deleted` at once and removed after file.delete.delay.ms, so that reads
under way end well. Nothing here waits for a disk except where it says sync.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from runtime.entropy import Random
from runtime.files import FileHandle, FileSystem
from storage import names
from storage.checkpoints import sync_file
from storage.log_config import LogConfig
from storage.segment import Segment
from storage.segments import Segments


class Doomed(NamedTuple):
    """Files that are to be removed when `due_ms` has passed."""

    due_ms: int
    paths: list[str]


class LocalLog:
    """See the module. `directory` is the partition's."""

    __slots__ = (
        "_names_synced",
        "_random",
        "config",
        "directory",
        "doomed",
        "files",
        "flush_begun_ms",
        "flushed_position",
        "names_made",
        "recovery_point",
        "segments",
    )

    def __init__(self, files: FileSystem, directory: str, config: LogConfig, random: Random) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self._random = random
        self.segments = Segments()
        self.doomed: list[Doomed] = []
        self.recovery_point = 0  # everything below is synced
        self.flushed_position = 0  # in the active segment; what lies behind it is dirty
        self.flush_begun_ms = 0  # when the last periodic flush began, or dirty bytes were first seen
        self.names_made = 1  # how often a file appeared; those that were found on loading count as one
        self._names_synced = 0  # up to which of them the names are durable

    def new_segment(self, base_offset: int, now_ms: int) -> Segment:
        """Create the files of a segment and make it the active one."""
        jitter_max = min(self.config.segment_jitter_ms, self.config.roll_ms)
        jitter = self._random.integer(0, jitter_max - 1) if jitter_max > 0 else 0
        for suffix in (names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX):
            leftover = f"{self.directory}/{names.segment_file(base_offset, suffix)}"
            if self.files.exists(leftover):
                self.files.remove(leftover)
        segment = Segment(
            self.files,
            self.directory,
            base_offset,
            now_ms=now_ms,
            jitter_ms=jitter,
            create=True,
            preallocate_bytes=self.config.segment_bytes if self.config.preallocate else 0,
        )
        self.segments.add(segment)
        self.flushed_position = 0
        self.names_made += 1
        return segment

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Seal the active segment and begin one at `base_offset`; an empty one of that base is made anew."""
        active = self.segments.active
        if base_offset == active.base_offset and active.size == 0:
            return self._renew(active, now_ms)
        if base_offset <= active.base_offset:
            raise ValueError(f"{self.directory}: a roll to {base_offset}, but {active.base_offset} is active")
        active.seal()
        return self.new_segment(base_offset, now_ms)

    def _renew(self, empty: Segment, now_ms: int) -> Segment:
        """Begin an empty segment anew, in the same file: where that fails the log still has its place."""
        self.segments.remove(empty)
        try:
            fresh = self.new_segment(empty.base_offset, now_ms)
        except BaseException:
            self.segments.add(empty)
            raise
        empty.close_files()
        return fresh

    def flush_job(self, upto: int, *also: str | None) -> Callable[[], None]:
        """What has to be synced so that everything below `upto` is on the disk; to be run on any thread.

        Index entries go to their files here and now; the returned call only syncs, the files `also` first.
        `mark_flushed` follows it.
        """
        # A segment that was closed after the last flush got its final time entry then.
        since = self.segments.from_offset(self.recovery_point - 1)
        segments = [segment for segment in since if segment.base_offset < max(upto, 1)]
        handles: list[FileHandle] = []
        for segment in segments:
            segment.write_indexes()
            handles += segment.handles()
        first_of_all = [path for path in also if path is not None]
        renamed = bool(first_of_all) or self.names_made > self._names_synced
        directory = self.directory if renamed else None
        files, first = self.files, not self._names_synced
        topic_id = f"{self.directory}/{names.PARTITION_METADATA}"
        parent = self.directory.rpartition("/")[0]

        def sync() -> None:
            for path in first_of_all:
                sync_file(files, path)
            if first:
                sync_file(files, topic_id)
            for handle in handles:
                with suppress(ValueError):  # closed meanwhile: its segment was removed
                    handle.sync()
            if directory is not None:
                files.sync_dir(directory)
            if first:
                files.sync_dir(parent)

        return sync

    def mark_flushed(self, upto: int, names_made: int) -> None:
        """A flush job for `upto` ended well; `names_made` is the count when it began."""
        self.recovery_point = max(self.recovery_point, upto)
        self._names_synced = max(self._names_synced, names_made)

    def mark_known(self) -> None:
        """The names of all files are durable, as after a clean stop."""
        self._names_synced = self.names_made

    def set_aside(self, gone: list[Segment], now_ms: int) -> None:
        """Take segments out of the log; their files are renamed now and removed later."""
        paths = []
        for segment in gone:
            self.segments.remove(segment)
            paths += segment.rename_suffix("", names.DELETED)
            segment.close_files()
        self.doom(paths, now_ms)

    def doom(self, paths: list[str], now_ms: int) -> None:
        if paths:
            self.doomed.append(Doomed(now_ms + self.config.file_delete_delay_ms, paths))

    def take_doomed(self, now_ms: int) -> list[list[str]]:
        """Lists of files whose time has come; the caller removes them."""
        due = [entry.paths for entry in self.doomed if entry.due_ms <= now_ms]
        self.doomed = [entry for entry in self.doomed if entry.due_ms > now_ms]
        return due

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove every batch that ends at or above `offset`, which lies above the first base.

        Syncs what it did: records that were cut off must not come back beside their successors.
        """
        gone = [s for s in self.segments if s.base_offset > offset]
        self.set_aside(gone, now_ms)
        active = self.segments.active
        active.activate()
        found = active.locate(offset)
        if found is not None:
            active.truncate_position(found.position)
        else:
            active.truncate_position(active.size)
        active.handle.sync()
        if gone:
            self.files.sync_dir(self.directory)
        self.recovery_point = min(self.recovery_point, offset)
        self.flushed_position = active.size

    def restart_at(self, offset: int, now_ms: int) -> None:
        """Drop everything; one empty segment at `offset` remains, created before the last old one goes.

        Syncs the directory, as `truncate_to` does.
        """
        old = list(self.segments)
        clash = [segment for segment in old if segment.base_offset == offset]
        self.set_aside(clash, now_ms)
        self.new_segment(offset, now_ms)
        self.set_aside([segment for segment in old if segment not in clash], now_ms)
        self.segments.active.handle.sync()
        self.files.sync_dir(self.directory)
        self.recovery_point = min(self.recovery_point, offset)

    def rename_directory(self, directory: str) -> None:
        """The whole partition gets another name; descriptors are closed before."""
        for segment in self.segments:
            segment.close_files()
        self.files.rename(self.directory, directory)
        self.doomed = [
            Doomed(due_ms, [directory + path.removeprefix(self.directory) for path in paths])
            for due_ms, paths in self.doomed
        ]
        self.directory = directory
        for segment in self.segments:
            segment.directory = directory
        self._names_synced = 0

    def close_files(self) -> None:
        """Give up all descriptors without writing."""
        for segment in self.segments:
            segment.close_files()
