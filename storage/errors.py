"""Expected failures of the storage layer.

Three kinds: an append that the log refuses (the client is told why, the log is as before), an offset outside
the log, and a disk that failed (Kafka's KAFKA_STORAGE_ERROR). What a reader finds in damaged files is
`CorruptLog` (CORRUPT_MESSAGE); recovery turns it into a cut.
"""

from __future__ import annotations

import errno

from protocol.errors import ErrorCode


class StorageError(Exception):
    """Base of all expected failures here. `error` is what a client is answered."""

    retriable = False

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


class AppendRefused(StorageError):
    """The log does not take this batch: sequence, epoch or size. Nothing was written or changed."""


class OffsetOutOfRange(StorageError):
    """The offset lies outside [start_offset, end_offset]."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, message)


class StorageFailed(StorageError):
    """An operation on the disk failed (error 56).

    `offline` False: there was no room; the file was cut back and the log takes appends again when there is.
    `offline` True: the whole log directory is out of service until the broker restarts.
    """

    retriable = True

    def __init__(self, message: str, *, offline: bool) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
        self.offline = offline


class CorruptLog(StorageError):
    """Bytes on disk that cannot be a record batch, at `position` of the file."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)
        self.position = position


class CorruptCheckpoint(Exception):
    """A checkpoint or properties file that does not follow its format; the path and the line are named."""


class DirectoryLocked(Exception):
    """Another process uses the log directory."""


class InconsistentDirectory(Exception):
    """A log directory that does not belong here: other cluster, other node, or not a log directory at all."""


def is_full(error: OSError) -> bool:
    """Whether there is no room now: the disk, or the user's share of it, is full, or the process has no
    descriptor left. Such a failure passes.
    """
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
