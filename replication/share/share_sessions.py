"""Share sessions: which partitions a member reads, so that its requests name only what changes (KIP-932).

A session belongs to a member of a group, and to the connection on which it began: with that, it ends. Epoch 0
begins a session and ends the one before; -1 ends it; others must be the expected one, which starts at 1 and
goes up with each fetch and each acknowledgement. A session that ends by -1, or with its connection, gives
back what its member holds; one that is begun anew does not.

The table is bounded in sessions, as Kafka's is, and in partitions of all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

from protocol.errors import ErrorCode
from replication.share.share_partitions import Place

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
MAX_EPOCH = (1 << 31) - 1
PLACES_MAX = 400_000

SessionKey = tuple[str, str]
"""Group and member id."""


class SessionRefused(Exception):
    """The request does not fit the sessions: 42, 122, 123 or 133."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.message)
        self.error = error


class Row(Protocol):
    """What a fetch answers for one partition."""

    place: Place
    error: ErrorCode
    length: int


R = TypeVar("R", bound=Row)


class ShareSession:
    """`places` maps each partition that is read to whether the next answer names it even without news."""

    __slots__ = ("epoch", "key", "owner", "places")

    def __init__(self, key: SessionKey, places: Iterable[Place], owner: Hashable) -> None:
        self.key = key
        self.owner = owner
        self.epoch = 1
        self.places = dict.fromkeys(places, False)

    def update(self, wanted: Iterable[Place], forgotten: Iterable[Place]) -> None:
        """Add what is new and leave out what is named as forgotten."""
        for place in wanted:
            self.places.setdefault(place, True)
        for place in forgotten:
            self.places.pop(place, None)

    def step(self) -> None:
        """A request of the expected epoch came."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1

    def news(self, rows: Iterable[R]) -> list[R]:
        """The rows that the member has not been told: records, errors, and what it asked for first."""
        told = []
        for row in rows:
            flagged = self.places.get(row.place, False)
            failed = row.error is not ErrorCode.NONE
            if row.length or flagged or failed:
                told.append(row)
            if row.place in self.places:
                self.places[row.place] = failed
        return told


class ShareContext:
    """One fetch request: the partitions that it reads, and which rows its answer tells."""

    __slots__ = ("_epoch", "places", "session")

    def __init__(self, places: Sequence[Place], session: ShareSession | None) -> None:
        self.places = places
        self.session = session
        self._epoch = session.epoch if session is not None else INITIAL_EPOCH

    def respond(self, rows: Sequence[R]) -> tuple[ErrorCode, Sequence[R]]:
        """Top-level error and rows. 123: another request of the session has overtaken this one."""
        session = self.session
        if session is None:
            return ErrorCode.NONE, rows
        if session.epoch != self._epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH, ()
        return ErrorCode.NONE, session.news(rows)


class ShareSessions:
    """The sessions of a broker. `ended` hears of each one that goes with its connection, and of the
    partitions that it read.
    """

    def __init__(self, slots: int, ended: Callable[[SessionKey, Sequence[Place]], None]) -> None:
        self.slots = slots
        self._ended = ended
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}  # sessions of each group
        self._owned: dict[Hashable, dict[SessionKey, None]] = {}  # that began on a connection
        self._places = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, group_id: str, member: str) -> ShareSession | None:
        return self._sessions.get((group_id, member))

    def open(
        self,
        group_id: str,
        member: str,
        epoch: int,
        wanted: Sequence[Place],
        forgotten: Sequence[Place],
        has_acks: bool,
        owner: Hashable,
    ) -> ShareContext:
        """Begin a fetch. Raises SessionRefused."""
        key = (group_id, member)
        if epoch == INITIAL_EPOCH:
            if has_acks:
                raise SessionRefused(ErrorCode.INVALID_REQUEST)
            places = list(dict.fromkeys(wanted))
            self._begin(key, places, owner)
            return ShareContext(places, None)
        session = self._expected(key, epoch)
        if epoch == FINAL_EPOCH:
            return ShareContext((), None)
        before = len(session.places)
        if self._places + len(wanted) > PLACES_MAX:
            raise SessionRefused(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session.update(wanted, forgotten)
        self._places += len(session.places) - before
        session.step()
        return ShareContext(rotated(list(session.places), epoch), session)

    def acknowledged(self, group_id: str, member: str, epoch: int) -> None:
        """Begin an acknowledgement. Raises SessionRefused."""
        if epoch == INITIAL_EPOCH:
            raise SessionRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = self._expected((group_id, member), epoch)
        if epoch != FINAL_EPOCH:
            session.step()

    def end(self, group_id: str, member: str) -> list[Place]:
        """Take a session away; the partitions that it read."""
        session = self._remove((group_id, member))
        return list(session.places) if session is not None else []

    def has_members(self, group_id: str) -> bool:
        """Whether a member of the group has a session here."""
        return group_id in self._members

    def owner_gone(self, owner: Hashable) -> None:
        """A connection is gone, and its sessions with it."""
        for key in list(self._owned.get(owner, ())):
            session = self._remove(key)
            if session is not None:
                self._ended(key, list(session.places))

    def forget_all(self) -> None:
        """All sessions are over, and nobody hears of it."""
        for key in list(self._sessions):
            self._remove(key)

    def _begin(self, key: SessionKey, places: Sequence[Place], owner: Hashable) -> None:
        self._remove(key)
        if len(self._sessions) >= self.slots or self._places + len(places) > PLACES_MAX:
            raise SessionRefused(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self._sessions[key] = ShareSession(key, places, owner)
        self._members[key[0]] = self._members.get(key[0], 0) + 1
        self._places += len(places)
        self._owned.setdefault(owner, {})[key] = None

    def _expected(self, key: SessionKey, epoch: int) -> ShareSession:
        session = self._sessions.get(key)
        if session is None:
            raise SessionRefused(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch not in (FINAL_EPOCH, session.epoch):
            raise SessionRefused(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        return session

    def _remove(self, key: SessionKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._places -= len(session.places)
            owned = self._owned[session.owner]
            del owned[key]
            if not owned:
                del self._owned[session.owner]
            left = self._members[key[0]] - 1
            if left:
                self._members[key[0]] = left
            else:
                del self._members[key[0]]
        return session


def rotated(places: list[Place], by: int) -> list[Place]:
    """Another one first each time, so that none starves the others."""
    if len(places) < 2:
        return places
    at = by % len(places)
    return places[at:] + places[:at]
