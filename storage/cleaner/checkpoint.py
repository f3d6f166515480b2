"""`cleaner-offset-checkpoint`: up to where each compacted log of a directory is clean.

Kept in memory and written whole, on any thread, after each cleaning. A log that is cut or deleted takes its
entry along, which reaches the disk with the cleaner's next round or a clean stop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from runtime.files import FileSystem
from runtime.latest import Latest
from storage import checkpoints, names
from storage.errors import CorruptCheckpoint

logger = logging.getLogger(__name__)
Key = tuple[str, int]


class CleanOffsets:
    """The first dirty offset of each log that was ever cleaned, by topic and partition."""

    __slots__ = ("_files", "_latest", "_offsets", "_path", "_version", "_written")

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._path = f"{directory}/{names.CLEANER_OFFSETS}"
        self._offsets: dict[Key, int] = {}
        self._latest = Latest()
        self._version = self._written = 0

    @property
    def changed(self) -> bool:
        """Whether the file does not say what is known here."""
        return self._version != self._written

    def load(self) -> None:
        """Read the file; a damaged one is reported and counts as empty: all is cleaned anew, as in Kafka."""
        try:
            self._offsets = checkpoints.read_offsets(self._files, self._path)
        except CorruptCheckpoint as error:
            logger.warning("%s; it is read as empty", error)
            self._offsets = {}

    def get(self, key: Key) -> int | None:
        return self._offsets.get(key)

    def set(self, key: Key, offset: int) -> None:
        self._offsets[key] = offset
        self._version += 1

    def lower(self, key: Key, offset: int) -> None:
        """The log was cut: nothing from `offset` on is clean."""
        if self._offsets.get(key, -1) > offset:
            self.set(key, offset)

    def forget(self, key: Key) -> None:
        """The log is gone."""
        if self._offsets.pop(key, None) is not None:
            self._version += 1

    def write_job(self) -> Callable[[], None]:
        """The offsets as they are now; the call writes them, on any thread, unless newer ones were."""
        offsets, version = dict(self._offsets), self._version

        def write() -> None:
            checkpoints.write_offsets(self._files, self._path, offsets)
            self._written = version

        return self._latest.claim(write)

    def write_if_changed(self) -> None:
        """Write here and now what is not written yet. Raises OSError."""
        if self.changed:
            self.write_job()()
