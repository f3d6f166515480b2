"""One session with an SQLite file that several processes share: the side of it that lives on a thread.

Everything here runs on one thread and may block; shared_sqlite_store.py is the side on the event loop. What
is to be told goes through the callbacks, which are called on the thread.

Journal: SQLite's rollback journal with `synchronous=FULL`. It needs no shared memory, so no file is mapped
(sqlite_store.py says why), and costs three syncs for a commit where the write-ahead log costs one; therefore
writes that wait for each other go into one transaction together, each with a savepoint of its own.

A process that is stopped between the locking of the file and the end of its commit, some 20 ms, holds up all
others until it goes on or is killed. That is the price of a file; nobody's session ends meanwhile.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from replication.metadata import sqlite_sessions
from replication.metadata.notify import Event
from replication.metadata.sqlite_beats import Beats
from replication.metadata.sqlite_sessions import Session
from replication.metadata.sqlite_tree import FORMAT_SHARED, format_of, make_tables, transaction
from replication.metadata.store import NO_SESSION, SessionExpired, StoreError, StoreFailed
from runtime.background import monotonic, pause
from runtime.files import FileSystem

log = logging.getLogger("ottla.sqlite")

BEATS_PER_TIMEOUT: Final = 6
BUSY_TIMEOUT_S: Final = 0.1
LOCKED_PAUSE_S: Final = 0.005
LOCKED_MAX_S: Final = 10.0

_T = TypeVar("_T")

Write = Callable[[sqlite3.Connection, int], tuple[Any, list[Event]]]
"""What one caller wants in a transaction of the session with this id: its result, and what it changed."""

Outcome = tuple[Any, StoreError | None]
Tell = Callable[[list[Event] | None, int], None]
"""Events in the order of their commits, None when the log of them is too short; the number of the last."""


class SharedSqliteSession:
    """See the module. `contact` is when the file was last seen with the session in it, by `monotonic`."""

    def __init__(
        self,
        files: FileSystem,
        path: str,
        owner: str,
        timeout_ms: int,
        tell: Tell,
        over: Callable[[], None],
    ) -> None:
        self._files = files
        self._path = path
        self._owner = owner
        self._timeout_ms = timeout_ms
        self._tell = tell
        self._over = over
        self._beat_s = timeout_ms / 1000 / BEATS_PER_TIMEOUT
        self._beats = Beats(files, f"{path}-sessions", self._beat_s)
        self._connection: sqlite3.Connection | None = None
        self._session_id = NO_SESSION
        self._others: list[Session] = []
        self._version = -1
        self._seen = 0
        self._stamp, self._settled = -1, False
        self._next_beat = 0.0
        self._complaint = ""
        self.contact = monotonic()

    def begin(self, seen: int | None) -> tuple[int, list[Event] | None, int]:
        """Open the file and start the session: its id, and what happened after change number `seen` (nothing
        where that is None), with the number of the last change. Raises StoreFailed.
        """
        return self._unlocked(lambda: self._begin(seen))

    def read(self, read: Callable[[sqlite3.Connection], _T]) -> _T:
        """What it shows was told before. Raises StoreError."""

        def look_and_read() -> _T:
            connection = self._open_connection()
            self._look_for_changes(connection)
            return read(connection)

        return self._unlocked(look_and_read)

    def write(self, writes: Sequence[Write]) -> list[Outcome]:
        """All of them in one transaction; those that are refused change nothing and harm no other."""
        try:
            return self._unlocked(lambda: self._write(writes))
        except StoreError as error:
            if isinstance(error, SessionExpired):
                self._lost()
            return [(None, error)] * len(writes)

    def tick(self) -> None:
        """Beat, tell what others have changed, and end the sessions of those that have fallen silent."""
        if self._connection is None:
            return
        try:
            is_time = self._beat_if_due()
            if not self._look_if_written(self._connection, is_time):
                self._lost()
                return
            self.contact = monotonic()
            if is_time:
                for session_id in self._beats.silent_for_too_long(self._others, self.contact):
                    self._expire(self._connection, session_id)
            self._complaint = ""
        except (sqlite3.Error, OSError) as error:
            if not _is_busy(error) and str(error) != self._complaint:
                self._complaint = str(error)
                log.error("%s cannot be looked after: %s", self._path, error)

    def end(self) -> None:
        """The session is over, and its ephemeral nodes are gone unless the file can't be written."""
        connection, session_id = self._connection, self._session_id
        if connection is None:
            return
        try:
            self._unlocked(lambda: self._end(connection, session_id))
        except StoreError as error:
            log.warning("The session is left to time out: %s", error)
        self._close()
        self._beats.forget(session_id)

    def _begin(self, seen: int | None) -> tuple[int, list[Event] | None, int]:
        connection = sqlite3.connect(
            self._path, check_same_thread=False, isolation_level=None, timeout=BUSY_TIMEOUT_S
        )
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = TRUNCATE").fetchone()
            if mode != "truncate":
                raise StoreFailed(self._path, f"is used by another process in journal mode {mode}")
            connection.execute("PRAGMA synchronous = FULL")
            with transaction(connection):
                if format_of(connection, self._path) < FORMAT_SHARED:
                    make_tables(connection, sqlite_sessions.SCHEMA, FORMAT_SHARED)
                    connection.execute("DELETE FROM node WHERE ephemeral != 0")
                session = sqlite_sessions.begin(connection, self._owner, self._timeout_ms)
                newest = sqlite_sessions.last_change(connection)
                missed, self._seen = sqlite_sessions.changes_after(
                    connection, newest if seen is None else seen
                )
                # Before others can know of the session: they count from the first time they see its beat.
                self._beats.begin(session.id, monotonic())
        except BaseException:
            connection.close()
            raise
        self._connection, self._session_id = connection, session.id
        self.contact = monotonic()
        self._next_beat = self.contact + self._beat_s
        return session.id, missed, self._seen

    def _write(self, writes: Sequence[Write]) -> list[Outcome]:
        connection = self._open_connection()
        outcomes: list[Outcome] = []
        with transaction(connection):
            if not sqlite_sessions.exists(connection, self._session_id):
                raise SessionExpired(self._path, "the others have taken this process for dead")
            for write in writes:
                connection.execute("SAVEPOINT write")
                try:
                    result, events = write(connection, self._session_id)
                except StoreError as refusal:
                    connection.execute("ROLLBACK TO write")
                    outcomes.append((None, refusal))
                else:
                    sqlite_sessions.log_changes(connection, events)
                    outcomes.append((result, None))
                connection.execute("RELEASE write")
            events_since, newest = sqlite_sessions.changes_after(connection, self._seen)
        self._told(events_since, newest)
        return outcomes

    def _look_if_written(self, connection: sqlite3.Connection, is_time: bool) -> bool:
        """As `_look_for_changes`, which asks SQLite and costs 0.2 ms twenty times a second, or nothing where
        the file's time is the same as at the last two ticks. One is not enough: what is written within the
        same few milliseconds has the same time. A beat looks in any case.
        """
        stamp = self._files.mtime_ms(self._path)
        if stamp == self._stamp and self._settled and not is_time:
            return True
        is_here = self._look_for_changes(connection)
        self._settled, self._stamp = stamp == self._stamp, stamp
        return is_here

    def _look_for_changes(self, connection: sqlite3.Connection) -> bool:
        """Whether the session is still there."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version == self._version:
            return True
        connection.execute("BEGIN")
        try:
            is_here = sqlite_sessions.exists(connection, self._session_id)
            events, newest = sqlite_sessions.changes_after(connection, self._seen)
            self._others = [s for s in sqlite_sessions.sessions(connection) if s.id != self._session_id]
        finally:
            connection.execute("COMMIT")
        self._version = version
        self._told(events, newest)
        return is_here

    def _expire(self, connection: sqlite3.Connection, session_id: int) -> None:
        with transaction(connection):
            sqlite_sessions.end(connection, session_id)
            events, newest = sqlite_sessions.changes_after(connection, self._seen)
        log.warning("Nothing was heard of session %d for its time-out; it is over", session_id)
        self._others = [other for other in self._others if other.id != session_id]
        self._beats.forget(session_id)
        self._told(events, newest)

    def _end(self, connection: sqlite3.Connection, session_id: int) -> None:
        with transaction(connection):
            sqlite_sessions.end(connection, session_id)

    def _told(self, events: list[Event] | None, newest: int) -> None:
        self._seen = newest
        if events is None or events:
            self._tell(events, newest)

    def _lost(self) -> None:
        """Others have ended the session."""
        if self._connection is not None:
            self._close()
            self._over()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        self._session_id = NO_SESSION
        self._beats.stop()
        if connection is not None:
            connection.close()

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise SessionExpired(self._path, "the session is over")
        return self._connection

    def _beat_if_due(self) -> bool:
        now = monotonic()
        if now < self._next_beat:
            return False
        self._next_beat = now + self._beat_s
        try:
            self._beats.beat()
        except OSError as error:
            log.error("No sign of life can be given: %s", error)
        return True

    def _unlocked(self, work: Callable[[], _T]) -> _T:
        """Do it when no other process is writing. Raises StoreFailed where that lasts."""
        give_up_at = monotonic() + LOCKED_MAX_S
        while True:
            try:
                return work()
            except sqlite3.Error as error:
                if not _is_busy(error) or monotonic() > give_up_at:
                    raise StoreFailed(self._path, str(error)) from error
            except OSError as error:
                raise StoreFailed(self._path, str(error)) from error
            self._beat_if_due()
            pause(LOCKED_PAUSE_S)


def _is_busy(error: Exception) -> bool:
    """Whether another process holds a lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
