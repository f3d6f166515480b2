"""Which requests begin, use and end fetch sessions, how they wait, and who gets a slot."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication import fetch_sessions
from replication.fetch import Row, Wanted
from replication.fetch_sessions import EVICTION_MS, MAX_EPOCH, Kind
from tests.unit.replication.cluster import Parked, produce, wanted
from tests.unit.replication.session_client import IDS, NAMES, Client, every, fill, keys, on_sessions, params


def test_no_session_is_made_when_none_is_wanted():
    def story(broker, client):
        error, rows = client.full(*every(0, 1), epoch=-1)
        assert (error, client.session_id, len(rows)) == (ErrorCode.NONE, 0, 2)
        assert len(client.sessions) == 0

    on_sessions(story)


def test_a_full_fetch_makes_a_session_with_a_random_id_and_closes_the_given_one():
    def story(broker, client):
        assert keys(client.full(*every(0, 1))) == [0, 1]
        first = client.session_id
        assert first > 0
        assert keys(client.full(*every(2))) == [2]
        assert client.session_id not in (0, first)
        assert client.sessions.get(first) is None
        assert len(client.sessions) == 1
        assert client.sessions.watched == 1
        assert len(broker.replicas.get("t", 0).watches) == 0

    on_sessions(story)


def test_the_final_epoch_closes_and_is_answered_in_full():
    def story(broker, client):
        client.full(*every(0, 1))
        error, rows = client.full(*every(0, 1), epoch=-1)
        assert (error, client.session_id, len(rows)) == (ErrorCode.NONE, 0, 2)
        assert len(client.sessions) == client.sessions.watched == 0

    on_sessions(story)


def test_unknown_sessions_and_wrong_epochs():
    def story(broker, client):
        client.full(*every(0))
        kept = client.session_id
        for session_id, epoch, code in (
            (kept + 1, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
            (kept, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
            (kept, -2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
            (kept, MAX_EPOCH, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ):
            context = client.context([], (), epoch, session_id)
            assert context.kind is Kind.ERROR
            answer = context.read()
            assert answer.ready
            assert context.respond(answer, 0) == (code, 0, [])
        assert keys(client.more()) == []  # the session goes on as if nothing had been

    on_sessions(story)


@pytest.mark.parametrize(("first", "second"), [(NAMES, IDS), (IDS, NAMES)])
def test_a_switch_between_names_and_ids_is_refused(first, second):
    def story(broker, client):
        entry = Wanted("", broker.topic_id, 0, 0, 100) if first == IDS else wanted("t", 0)
        client.full(entry)
        client.version = second
        error, _ = client.more()
        assert error == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    on_sessions(story, version=first)


def test_epochs_go_from_the_greatest_to_1():
    def story(broker, client):
        client.full(*every(0))
        client.sessions.get(client.session_id).epoch = client.epoch = MAX_EPOCH
        assert keys(client.more()) == []
        client.epoch = 1
        assert keys(client.more()) == []
        assert client.sessions.get(client.session_id).epoch == 2

    on_sessions(story)


def test_forgotten_partitions_are_gone_and_the_last_one_closes_the_session():
    def story(broker, client):
        client.full(*every(0, 1, 2))
        fill(broker, 0)
        fill(broker, 1)
        assert keys(client.more(forget=[("t", 0), ("t", 2), ("t", 77)])) == [1]
        assert client.sessions.watched == 1
        assert len(broker.replicas.get("t", 0).watches) == 0
        error, rows = client.more(forget=[("t", 1)])
        assert (error, rows, client.session_id) == (ErrorCode.NONE, {}, 0)
        assert len(client.sessions) == client.sessions.watched == 0

    on_sessions(story)


def test_a_partition_that_is_forgotten_and_wanted_at_once_is_forgotten():
    def story(broker, client):
        client.full(*every(0, 1))
        client.more(wanted("t", 0, 0), forget=[("t", 0)])
        assert list(client.sessions.get(client.session_id).watches) == [("t", 1)]

    on_sessions(story)


def test_partitions_can_be_added():
    def story(broker, client):
        client.full(*every(0))
        fill(broker, 3)
        assert keys(client.more(*every(3, 2))) == [3, 2]
        assert client.sessions.watched == 3

    on_sessions(story)


def test_a_fetch_that_waits_is_woken_by_an_append_and_tells_nothing_twice():
    def story(broker, client):
        client.full(*every(0, 1))
        client.more()
        context = client.context([], (), client.epoch, client.session_id, wait=500)
        assert not context.read().ready
        answers = []

        def look():
            context.unpark(waiter)
            answers.append(context.read())

        waiter = Parked(look)
        context.park(waiter)
        partition = broker.replicas.get("t", 1)
        produce(partition)
        assert waiter.woken == 0
        partition.wake()
        assert waiter.woken == 1
        assert answers[0].ready
        assert [row.index for row in context.respond(answers[0], 0)[2]] == [1]
        produce(partition)
        partition.wake()
        assert waiter.woken == 1

    on_sessions(story)


def test_a_sessionless_fetch_parks_in_its_partitions():
    def story(broker, client):
        context = client.context(every(0, 1), (), -1, 0, wait=500)
        assert not context.read().ready
        waiter = Parked(lambda: context.unpark(waiter))
        context.park(waiter)
        partitions = [broker.replicas.get("t", index) for index in range(2)]
        assert [len(partition.waiters) for partition in partitions] == [1, 1]
        produce(partitions[1])
        partitions[1].wake()
        assert waiter.woken == 1
        assert [len(partition.waiters) for partition in partitions] == [0, 0]

    on_sessions(story)


def test_a_request_that_waited_while_another_used_the_session_gets_71():
    def story(broker, client):
        client.full(*every(0))
        client.more()
        context = client.context([], (), client.epoch, client.session_id, wait=500)
        client.epoch += 1
        client.more()
        answer = context.read()
        assert answer.ready
        assert context.respond(answer, 0) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0, [])

    on_sessions(story)


def test_closing_a_session_wakes_who_waits_on_it():
    def story(broker, client):
        client.full(*every(0))
        context = client.context([], (), client.epoch, client.session_id, wait=500)
        waiter = Parked(lambda: context.unpark(waiter))
        context.park(waiter)
        client.sessions.close(client.session_id)
        assert waiter.woken == 1
        assert context.read().ready

    on_sessions(story)


def rows_of(broker, size):
    return [Row(Wanted("t", bytes(16), 1000 + index, 0, 1)) for index in range(size)]


class Cache:
    """Sessions of given sizes, made at given times."""

    def __init__(self, broker, sessions):
        self.broker, self.sessions = broker, sessions

    def make(self, size, now, follower=False):
        session = self.sessions.create(
            params(replica_id=2 if follower else -1), rows_of(self.broker, size), now
        )
        return session.session_id if session is not None else 0

    def use(self, session_id, now):
        session = self.sessions.get(session_id)
        self.sessions.open(params(replica_id=-1), session_id, session.epoch, [], [], now)

    def has(self, *session_ids):
        return [self.sessions.get(session_id) is not None for session_id in session_ids]


def on_cache(story, slots=2):
    on_sessions(lambda broker, client: story(Cache(broker, client.sessions)), slots=slots)


def test_no_slot_is_taken_from_a_session_that_is_neither_idle_nor_old():
    def story(cache):
        first, second = cache.make(1, 0), cache.make(1, 0)
        assert cache.make(100, EVICTION_MS) == 0
        assert cache.has(first, second) == [True, True]

    on_cache(story)


def test_an_idle_session_makes_room_the_longest_unused_first():
    def story(cache):
        first, second = cache.make(5, 0), cache.make(5, 0)
        cache.use(first, 10)
        third = cache.make(1, EVICTION_MS + 1)
        assert third
        assert cache.has(first, second) == [True, False]
        assert cache.sessions.evictions == 1

    on_cache(story)


def test_a_bigger_session_replaces_the_smallest_that_is_old():
    def story(cache):
        big, small = cache.make(9, 0), cache.make(3, 0)
        old = EVICTION_MS + 1
        cache.use(big, old)
        cache.use(small, old)
        assert cache.make(2, old) == 0
        assert cache.make(3, old) == 0
        assert cache.make(4, old)
        assert cache.has(big, small) == [True, False]

    on_cache(story)


def test_followers_push_out_consumers_but_not_the_reverse():
    def story(cache):
        consumer, follower = cache.make(9, 0), cache.make(3, 0, follower=True)
        assert cache.make(100, 1) == 0
        second = cache.make(1, 1, follower=True)
        assert second
        assert cache.has(consumer, follower) == [False, True]
        assert cache.make(1, 2, follower=True) == 0
        old = EVICTION_MS + 1
        cache.use(follower, old)
        cache.use(second, old)
        assert cache.make(1000, old + 1) == 0  # a consumer never outranks a follower
        cache.use(second, old + 2)
        assert cache.make(2, old + 2, follower=True)
        assert cache.has(follower, second) == [True, False]

    on_cache(story)


def test_sizes_follow_the_session():
    def story(broker, client):
        client.full(*every(0, 1, 2))
        client.more(forget=[("t", 0)])
        session = client.sessions.get(client.session_id)
        assert session.key == (False, 2, session.session_id)
        assert client.sessions.watched == 2

    on_sessions(story)


def test_all_sessions_together_are_bounded(monkeypatch):
    monkeypatch.setattr(fetch_sessions, "WATCHES_MAX", 3)

    def story(broker, client):
        client.full(*every(0, 1))
        other = Client(broker, client.sessions)
        answer = other.full(*every(0, 1))
        assert (keys(answer), other.session_id) == ([0, 1], 0)
        error, _ = client.more(*every(2, 3))
        assert error == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert client.sessions.watched == len(client.sessions) == 0

    on_sessions(story)


def test_what_a_follower_left_behind_goes_with_its_next_session():
    def story(broker, client):
        sessions, rows = client.sessions, [Row(wanted("t"), ErrorCode.NONE)]

        def make(replica_id, now_ms):
            return sessions.create(params(replica_id=replica_id), rows, now_ms)

        mine, others, consumers = make(2, 0), make(3, 0), make(-1, 0)
        in_use = make(2, 1)
        assert make(2, EVICTION_MS + 1)
        kept = [session for session in (mine, others, consumers, in_use) if sessions.get(session.session_id)]
        assert kept == [others, consumers, in_use]

    on_sessions(story)
