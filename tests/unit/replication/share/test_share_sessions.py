"""Share sessions: epochs, what is told, what ends with a connection, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.errors import ErrorCode
from replication.share import share_sessions
from replication.share.share_fetch import ShareRow
from replication.share.share_sessions import MAX_EPOCH, SessionRefused, ShareSessions, rotated

ID = b"\x01" * 16
A, B, C = (ID, 0), (ID, 1), (ID, 2)
HOME, OTHER = object(), object()


class World:
    def __init__(self, slots: int = 10) -> None:
        self.ended: list[Any] = []
        self.sessions = ShareSessions(slots, lambda key, places: self.ended.append((key, list(places))))

    def open(
        self,
        epoch: int,
        *wanted: Any,
        member: str = "ann",
        group: str = "g",
        owner: object = HOME,
        **more: Any,
    ) -> Any:
        fields = {"forgotten": (), "has_acks": False, **more}
        return self.sessions.open(group, member, epoch, list(wanted), owner=owner, **fields)

    def refused(self, epoch: int, *wanted: Any, **more: Any) -> ErrorCode:
        with pytest.raises(SessionRefused) as info:
            self.open(epoch, *wanted, **more)
        return info.value.error


@pytest.fixture
def world() -> World:
    return World()


def row(place: Any, length: int = 0, error: ErrorCode = ErrorCode.NONE) -> ShareRow:
    found = ShareRow(place, error)
    found.length = length
    return found


def told(context: Any, *rows: ShareRow) -> list[Any]:
    error, found = context.respond(rows)
    assert error is ErrorCode.NONE
    return [each.place for each in found]


def test_a_first_answer_tells_everything(world: World) -> None:
    context = world.open(0, A, B)
    assert context.places == [A, B]
    assert told(context, row(A), row(B)) == [A, B]


def test_a_later_one_tells_records_and_errors_and_the_end_of_errors(world: World) -> None:
    world.open(0, A, B)
    assert told(world.open(1), row(A, 10), row(B)) == [A]
    assert told(world.open(2), row(A), row(B, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)) == [B]
    assert told(world.open(3), row(A), row(B)) == [B]
    assert told(world.open(4), row(A), row(B)) == []


def test_what_is_added_is_told_once(world: World) -> None:
    world.open(0, A)
    context = world.open(1, B)
    assert sorted(context.places) == [A, B]
    assert told(context, row(A), row(B)) == [B]
    assert told(world.open(2), row(A), row(B)) == []
    assert world.open(3, forgotten=[A]).places == [B]


def test_epochs(world: World) -> None:
    assert world.refused(1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert world.refused(-1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert world.refused(0, A, has_acks=True) is ErrorCode.INVALID_REQUEST
    world.open(0, A)
    assert world.refused(2) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    world.open(1)
    world.sessions.acknowledged("g", "ann", 2)
    for epoch, error in ((0, 123), (2, 123), (7, 123)):
        with pytest.raises(SessionRefused) as info:
            world.sessions.acknowledged("g", "ann", epoch)
        assert info.value.error == error
    session = world.sessions.get("g", "ann")
    assert session is not None
    session.epoch = MAX_EPOCH
    world.open(MAX_EPOCH)
    assert session.epoch == 1


def test_an_answer_that_was_overtaken_says_so(world: World) -> None:
    world.open(0, A)
    late = world.open(1)
    world.open(2)
    assert late.respond([row(A, 5)]) == (ErrorCode.INVALID_SHARE_SESSION_EPOCH, ())


def test_minus_1_reads_nothing_and_the_session_ends_with_it(world: World) -> None:
    world.open(0, A, B)
    assert world.open(-1, A).places == ()
    world.sessions.acknowledged("g", "ann", -1)
    assert world.sessions.end("g", "ann") == [A, B]
    assert world.sessions.end("g", "ann") == []
    assert world.refused(1) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_the_first_one_rotates(world: World) -> None:
    world.open(0, A, B, C)
    assert world.open(1).places == [B, C, A]
    assert world.open(2).places == [C, A, B]
    assert rotated([A], 5) == [A]


def test_sessions_end_with_their_connection(world: World) -> None:
    world.open(0, A)
    world.open(0, B, member="bob", owner=OTHER)
    world.open(1, owner=OTHER)  # who goes on with it does not own it
    world.sessions.owner_gone(OTHER)
    assert world.ended == [(("g", "bob"), [B])]
    assert world.sessions.has_members("g")
    world.sessions.owner_gone(HOME)
    assert world.ended[1:] == [(("g", "ann"), [A])]
    assert not world.sessions.has_members("g")
    world.sessions.owner_gone(HOME)
    assert len(world.ended) == 2


def test_a_session_that_is_begun_anew_belongs_to_the_new_connection(world: World) -> None:
    world.open(0, A)
    world.open(0, A, owner=OTHER)
    world.sessions.owner_gone(HOME)
    assert world.ended == []
    assert len(world.sessions) == 1


def test_all_of_them_end_at_once_without_a_word(world: World) -> None:
    world.open(0, A)
    world.open(0, B, member="bob", owner=OTHER)
    world.sessions.forget_all()
    assert (len(world.sessions), world.ended) == (0, [])
    assert world.refused(1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    world.open(0, A)
    world.sessions.owner_gone(OTHER)
    assert len(world.sessions) == 1


def test_the_table_is_bounded() -> None:
    world = World(slots=2)
    world.open(0, A)
    world.open(0, A, member="bob")
    assert world.refused(0, A, member="cat") is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    world.open(0, A)  # its own slot
    world.sessions.end("g", "bob")
    world.open(0, A, member="cat")


def test_partitions_of_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_sessions, "PLACES_MAX", 3)
    world = World()
    world.open(0, A, B)
    assert world.refused(0, A, B, member="bob") is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert world.refused(1, A, B) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    world.open(1, C)
    world.sessions.end("g", "ann")
    world.open(0, A, B, C, member="bob")
