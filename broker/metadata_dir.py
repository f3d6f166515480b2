"""The directory of the metadata of a broker that is alone: metadata.log.dir, else its first log directory.

One that is no log directory is locked and has a meta.properties, as those have. Without what was in it the
broker does not start: it would begin with no topics, and set the logs of the old ones aside.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.entropy import Random
from runtime.files import FileSystem
from storage.log_dirs import LogDir, lock_all


class CannotStart(Exception):
    """The broker does not start; the text is for the user."""


class MetadataDir:
    """See the module. `log_dirs` are locked already; `file_name` is the store's."""

    def __init__(self, files: FileSystem, path: str, log_dirs: Sequence[LogDir], file_name: str) -> None:
        self._files, self._file_name = files, file_name
        self._log_dirs = log_dirs
        path = files.absolute(path)
        known = next((directory for directory in log_dirs if directory.path == path), None)
        self.is_apart = known is None
        self.directory = known or LogDir(files, path)

    def open(self) -> None:
        """Lock it, if it is apart. Raises CannotStart, DirectoryLocked."""
        directory = self.directory
        if self.is_apart:
            lock_all(self._files, [*self._log_dirs, directory])
        if directory.offline:
            raise CannotStart(f"The directory of the metadata, {directory.path}, fails: {directory.failure}")
        before = self._log_dirs[0].path_of(self._file_name)
        is_here = self._files.exists(directory.path_of(self._file_name))
        if self.is_apart and not is_here and self._files.exists(before):
            raise CannotStart(
                f"metadata.log.dir is {directory.path}, but the metadata lies in {before}: "
                f"move that file there, or take metadata.log.dir away"
            )

    def check(self, cluster_id: str, node_id: int, random: Random) -> None:
        """Write or compare its meta.properties. Raises InconsistentDirectory, CorruptCheckpoint, OSError."""
        if self.is_apart:
            self.directory.check_meta(cluster_id, node_id, random.uuid())

    def failed(self, directory: LogDir) -> bool:
        """Whether that directory, which failed, is this one."""
        return directory is self.directory

    def close(self) -> None:
        """Let others have it."""
        if self.is_apart:
            self.directory.release()
