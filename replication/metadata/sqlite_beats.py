"""Signs of life between processes of one machine: each session has a small file with a number that it raises.

Nothing is synced, no lock is taken: the page cache is what the processes share, and a beat is a write of
eight bytes, which works also while the database is locked. No clock is compared between processes either. An
observer counts how long it has seen the same number, and counts only the time in which it was awake itself:
when all are held up together (a suspended machine, a locked database), nobody is taken for dead.
"""

from __future__ import annotations

from replication.metadata.sqlite_sessions import Session
from runtime.files import FileHandle, FileSystem

_LENGTH = 8


class Beats:
    """The own beat and those of others. Times are seconds of one monotonic clock of this process."""

    def __init__(self, files: FileSystem, folder: str, interval_s: float) -> None:
        self._files = files
        self._folder = folder
        self._interval_s = interval_s
        self._own: FileHandle | None = None
        self._number = 0
        self._looked_at = 0.0
        self._silent: dict[int, tuple[bytes, float]] = {}

    def begin(self, session_id: int, now: float) -> None:
        """Make the file of an own session."""
        self._files.make_dirs(self._folder)
        self._own = self._files.open(self._path(session_id), create=True)
        self._silent.clear()
        self._looked_at = now
        self.beat()

    def beat(self) -> None:
        if self._own is not None:
            self._number += 1
            self._own.write_at(0, self._number.to_bytes(_LENGTH))

    def stop(self) -> None:
        """Beat no more; the file stays until the session is over."""
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def forget(self, session_id: int) -> None:
        """Of a session that is over."""
        self._silent.pop(session_id, None)
        if self._files.exists(self._path(session_id)):
            self._files.remove(self._path(session_id))

    def silent_for_too_long(self, others: list[Session], now: float) -> list[int]:
        """The sessions whose number has not changed for their time-out."""
        awake_s = min(now - self._looked_at, 2 * self._interval_s)
        self._looked_at = now
        before, self._silent = self._silent, {}
        dead: list[int] = []
        for session in others:
            number = self._read(session.id)
            seen, silent_s = before.get(session.id, (number, 0.0))
            silent_s = silent_s + awake_s if seen == number and session.id in before else 0.0
            self._silent[session.id] = (number, silent_s)
            if silent_s * 1000 >= session.timeout_ms:
                dead.append(session.id)
        return dead

    def _read(self, session_id: int) -> bytes:
        try:
            return self._files.read_bytes(self._path(session_id))
        except FileNotFoundError:
            return b""

    def _path(self, session_id: int) -> str:
        return f"{self._folder}/{session_id}"
