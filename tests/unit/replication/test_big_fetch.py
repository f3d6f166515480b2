"""Fetches in pieces: they tell what those in one go tell, and miss nothing that comes between two pieces."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication import big_fetch, fetch_sessions
from replication.big_fetch import BigFetch, open_in_pieces
from replication.fetch import Wanted
from replication.fetch_sessions import EVICTION_MS, Kind
from tests.unit.replication import test_fetch_session
from tests.unit.replication.cluster import Parked, produce, wanted
from tests.unit.replication.session_client import every, fill, on_sessions, params


@pytest.fixture(autouse=True)
def piece(monkeypatch):
    """Of one partition."""
    monkeypatch.setattr(big_fetch, "PIECE", 1)


def finish(steps, between=lambda step: None):
    """Run the steps to their end, and something between each two of them."""
    step = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        between(step)
        step += 1


class InPieces(test_fetch_session.Sessions):
    """The model of sessions, which are used in pieces."""

    def context(self, params, session_id, epoch, entries, gone):
        return finish(open_in_pieces(self.sessions, params, session_id, epoch, entries, gone, 0))

    def answer(self, context):
        work = BigFetch(context, Parked())
        finish(work.reading())
        answer = finish(work.reading())
        work.leave()
        return finish(work.responding(answer, 0))


InPieces.TestCase.settings = test_fetch_session.SETTINGS
TestInPieces = InPieces.TestCase


def begin(client, entries, epoch=-1, session_id=0, **fields):
    """Context and work of a request."""
    waiter = Parked()
    context = client.context(entries, (), epoch, session_id, **fields)
    return context, BigFetch(context, waiter), waiter


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("index", range(3))
def test_what_comes_while_it_reads_wakes_or_is_in_the_answer(step, index):
    def story(broker, client):
        _, work, waiter = begin(client, every(0, 1, 2), wait=500)

        def come(at):
            if at == step:
                fill(broker, index)
                broker.replicas.get("t", index).wake()

        answer = finish(work.reading(), come)
        assert [row.length > 0 for row in answer.rows] == [i == index and index > step for i in range(3)]
        assert waiter.woken == (index <= step)
        assert answer.ready == (index > step)
        again = finish(work.reading())
        assert [row.length > 0 for row in again.rows] == [i == index for i in range(3)]
        fill(broker, index)
        broker.replicas.get("t", index).wake()
        assert waiter.woken == (index <= step) + 1
        work.leave()
        assert all(not broker.replicas.get("t", i).waiters for i in range(3))

    on_sessions(story)


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("telling", [False, True])
@pytest.mark.parametrize("index", range(3))
def test_a_session_tells_later_what_came_between_the_pieces(step, telling, index):
    def story(broker, client):
        client.full(*every(0, 1, 2))
        for each in range(3):
            fill(broker, each)
        moved = every(0, 1, 2, offset=1)
        _, work, _ = begin(client, [], client.epoch, client.session_id)
        client.epoch += 1

        def come(at):
            if at == step:
                fill(broker, index)

        answer = finish(work.reading(), come if not telling else lambda at: None)
        error, _, rows = finish(work.responding(answer, 0), come if telling else lambda at: None)
        assert (error, [row.index for row in rows]) == (ErrorCode.NONE, [0, 1, 2])
        told = {row.index: row.high_watermark for row in rows}
        assert told == {i: 2 if i == index and not telling and index > step else 1 for i in range(3)}
        _, news = client.more(*moved)
        assert [key[1] for key, row in news.items() if row.length] == [index]
        assert news["t", index].high_watermark == 2

    on_sessions(story)


@pytest.mark.parametrize("step", range(3))
@pytest.mark.parametrize("telling", [False, True])
def test_a_new_session_tells_later_what_came_between_the_pieces(step, telling):
    def story(broker, client):
        _, work, _ = begin(client, every(0, 1, 2), epoch=0)

        def come(at):
            if at == step:
                fill(broker, 0)

        answer = finish(work.reading(), come if not telling else lambda at: None)
        error, client.session_id, rows = finish(work.responding(answer, 0), come if telling else int)
        assert (error, [row.length for row in rows]) == (ErrorCode.NONE, [0, 0, 0])
        client.epoch = 1
        _, news = client.more()
        assert [key[1] for key in news] == [0]

    on_sessions(story)


@pytest.mark.parametrize("where", ["opening", "reading", "telling"])
@pytest.mark.parametrize("how", ["used", "closed"])
def test_a_session_that_another_request_takes_meanwhile(where, how):
    def story(broker, client):
        client.full(*every(0, 1, 2))
        for each in range(3):
            fill(broker, each)
        session_id, epoch = client.session_id, client.epoch

        def take(step):
            if step == 0 and how == "used":
                client.epoch = epoch + 1
                error, _ = client.more(forget=[("t", 1)])
                assert error == ErrorCode.NONE
            elif step == 0:
                client.sessions.close(session_id)

        def run(steps, name):
            return finish(steps, take if name == where else int)

        context = run(
            open_in_pieces(client.sessions, params(), session_id, epoch, every(0, 2), [("t", 0)], 0),
            "opening",
        )
        assert context.kind is Kind.INCREMENTAL
        work = BigFetch(context, Parked())
        answer = run(work.reading(), "reading")
        told = run(work.responding(answer, 0), "telling")
        assert told == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])
        watched = {"used": {"opening": 2, "reading": 1, "telling": 1}[where], "closed": 0}[how]
        assert client.sessions.watched == watched

    on_sessions(story)


def test_errors_need_no_reading():
    def story(broker, client):
        _, work, _ = begin(client, every(0), epoch=7, session_id=5)
        answer = finish(work.reading())
        assert finish(work.responding(answer, 0)) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])

    on_sessions(story)


def test_who_has_forgotten_all_is_answered_without_a_session():
    def story(broker, client):
        client.full(*every(0, 1))
        gone = [("t", 0), ("t", 1)]
        steps = open_in_pieces(client.sessions, params(), client.session_id, client.epoch, [], gone, 0)
        context = finish(steps)
        assert (context.kind, len(client.sessions)) == (Kind.SESSIONLESS, 0)

    on_sessions(story)


def test_a_session_for_which_there_is_no_room_is_not_made():
    def story(broker, client):
        client.full(*every(0, 1))
        kept = client.session_id
        _, work, _ = begin(client, every(2), epoch=0)
        error, session_id, rows = finish(work.responding(finish(work.reading()), client.now))
        assert (error, session_id, len(rows)) == (ErrorCode.NONE, 0, 1)
        assert client.sessions.watched == 2
        late = client.now + EVICTION_MS + 1
        _, work, _ = begin(client, every(2), epoch=0)
        _, session_id, _ = finish(work.responding(finish(work.reading()), late))
        assert session_id not in (0, kept)
        assert client.sessions.watched == 1

    on_sessions(story, slots=1)


def test_sessions_that_are_being_made_take_their_room(monkeypatch):
    monkeypatch.setattr(fetch_sessions, "WATCHES_MAX", 3)

    def story(broker, client):
        _, work, _ = begin(client, every(0, 1), epoch=0)
        making = work.responding(finish(work.reading()), 0)
        next(making)
        _, other, _ = begin(client, every(0, 1), epoch=0)
        assert finish(other.responding(finish(other.reading()), 0))[1] == 0
        making.close()  # the client has gone
        assert client.sessions.watched == 0
        _, other, _ = begin(client, every(0, 1), epoch=0)
        assert finish(other.responding(finish(other.reading()), 0))[1] > 0
        assert client.sessions.watched == 2

    on_sessions(story)


def test_an_unknown_partition_does_not_end_the_wait_of_the_others():
    def story(broker, client):
        _, work, _ = begin(client, [wanted("t", 0), wanted("u", 0)], wait=500)
        assert not finish(work.reading()).ready
        _, work, _ = begin(client, [wanted("u", 0), Wanted("u", bytes(16), 1, 0, 1)], wait=500)
        assert finish(work.reading()).ready

    on_sessions(story)


def test_who_may_not_wait_stands_nowhere():
    def story(broker, client):
        _, work, waiter = begin(client, every(0), wait=0)
        assert finish(work.reading()).ready
        produce(broker.replicas.get("t", 0))
        assert not broker.replicas.get("t", 0).waiters
        assert waiter.woken == 0

    on_sessions(story)
