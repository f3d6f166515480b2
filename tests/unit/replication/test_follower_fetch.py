"""What one request of a follower tells, with and without a session."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.fetch import FetchParams, read_all
from replication.fetch_sessions import FetchSessions
from replication.follower_fetch import FollowerFetch
from runtime.entropy import SeededRandom
from tests.unit.replication.cluster import Parked, wanted
from tests.unit.replication.leading import LAG_MS, Led


def params(wait=0):
    return FetchParams(12, wait, 1, 1 << 20, replica_id=2)


def once(led, offset, **fields):
    follower = FollowerFetch(2, led.cluster.now_ms)
    answer = read_all([wanted("t", 0, offset, **fields)], lambda _: led.partition, params(), follower)
    return answer.rows[0], follower


def test_the_answer_has_the_high_watermark_of_before_and_the_request_moves_it():
    led = Led(isr=(1, 2), replicas=(1, 2))
    led.produce(3)
    commit, consumer = Parked(), Parked()
    led.partition.await_commit(commit, 2)
    led.partition.waiters[consumer] = None
    row, follower = once(led, 3)
    assert (row.high_watermark, led.mark) == (0, 3)
    assert (commit.woken, consumer.woken) == (0, 0)
    follower.settle()
    assert (commit.woken, consumer.woken) == (1, 1)


def test_a_fetch_that_diverges_or_is_refused_says_nothing():
    led = Led(isr=(1, 2), replicas=(1, 2), epoch=4)
    led.produce(3)
    row, _ = once(led, 5, last_fetched_epoch=4)
    assert row.diverging == (4, 3)
    row, _ = once(led, 3, leader_epoch=3)
    assert row.error == ErrorCode.FENCED_LEADER_EPOCH
    row, _ = once(led, 9)
    assert row.error == ErrorCode.OFFSET_OUT_OF_RANGE
    assert led.leadership.followers[2].end_offset == -1


class Session:
    """Broker 2 with a fetch session on the led partition."""

    def __init__(self, led):
        self.led = led
        self.sessions = FetchSessions(lambda _: led.partition, SeededRandom(b"s"))
        self.session_id, self.epoch = 0, 0

    def fetch(self, *entries, after_ms=0, throttle=None):
        cluster = self.led.cluster
        cluster.now_ms += after_ms
        asked = FetchParams(12, 0, 1, 1 << 20, replica_id=2, throttle=throttle)
        context = self.sessions.open(asked, self.session_id, self.epoch, entries, (), cluster.now_ms)
        follower = FollowerFetch(2, cluster.now_ms)
        answer = context.read(follower)
        follower.settle()
        error, self.session_id, rows = context.respond(answer, cluster.now_ms)
        assert error == ErrorCode.NONE
        self.epoch += 1
        return rows

    def park(self):
        """A request that waits; it was read once."""
        cluster = self.led.cluster
        context = self.sessions.open(params(500), self.session_id, self.epoch, (), (), cluster.now_ms)
        assert not context.read(FollowerFetch(2, cluster.now_ms)).ready
        self.epoch += 1
        return context

    @property
    def follower(self):
        return self.led.leadership.followers[2]


def test_requests_that_do_not_name_a_partition_keep_it_caught_up():
    led = Led(isr=(1, 2), replicas=(1, 2))
    session = Session(led)
    session.fetch(wanted("t", 0, 0))
    for _ in range(5):
        assert session.fetch(after_ms=LAG_MS) == []
    last_ms = led.cluster.now_ms
    assert session.follower.caught_up_ms == last_ms
    led.produce(2)
    led.cluster.now_ms += LAG_MS
    assert led.leadership.lagging() == []
    led.cluster.now_ms += 1
    assert led.leadership.lagging() == [2]
    [row] = session.fetch()
    assert row.length > 0
    assert session.follower.caught_up_ms == last_ms
    session.fetch(wanted("t", 0, 2))
    assert session.follower.caught_up_ms == led.cluster.now_ms
    assert led.mark == 2


def test_a_higher_high_watermark_is_told_with_the_next_fetch():
    led = Led(isr=(1, 2), replicas=(1, 2))
    session = Session(led)
    session.fetch(wanted("t", 0, 0))
    led.produce(2)
    session.fetch()
    parked = Parked()
    assert session.fetch(wanted("t", 0, 2)) == []
    session.sessions.get(session.session_id).waiter = parked
    [row] = session.fetch()
    assert row.high_watermark == 2
    assert parked.woken == 0  # only who consumes is woken for it
    assert session.fetch() == []


def test_a_partition_that_the_session_forgets_ages():
    led = Led(isr=(1, 2), replicas=(1, 2))
    session = Session(led)
    session.fetch(wanted("t", 0, 0))
    session.fetch()
    before = led.cluster.now_ms
    session.sessions.close(session.session_id)
    session.session_id, session.epoch = 0, 0
    led.cluster.now_ms += LAG_MS
    assert session.follower.caught_up_ms == before


@pytest.mark.parametrize("waits", ["for the decision about another one", "to be alive"])
def test_a_follower_that_could_not_join_yet_does_with_a_fetch_that_brings_nothing_new(waits):
    led = Led(isr=(1,), replicas=(1, 2, 3))
    led.produce(3)
    session = Session(led)
    if waits == "to be alive":
        led.cluster.dead = [2]
    else:
        led.fetch(3, 3)
    session.fetch(wanted("t", 0, 3))
    assert [change.isr for change in led.cluster.proposals] == ([] if led.cluster.dead else [(1, 3)])
    parked = session.park()
    if led.cluster.dead:
        led.cluster.dead = []
        led.partition.look_again()
    else:
        led.decide()
    assert parked.read().rows == []  # its time is over, and says nothing new
    assert session.fetch() == []
    assert led.cluster.proposals[-1].isr[-1] == 2


def test_under_a_newer_epoch_the_high_watermark_is_told_again():
    led = Led(isr=(1,), replicas=(1, 2))
    led.cluster.dead = [2]
    led.produce(3)
    session = Session(led)
    session.fetch(wanted("t", 0, 3, leader_epoch=0))
    assert session.fetch() == []
    led.lead(epoch=1, version=1, isr=(1,), replicas=(1, 2))
    [row] = session.fetch(wanted("t", 0, 3, leader_epoch=1))
    assert row.high_watermark == 3


def test_what_the_quota_holds_back_is_told_when_it_may_be():
    led = Led(isr=(1,), replicas=(1, 2))
    session = Session(led)
    session.fetch(wanted("t", 0, 0))
    session.fetch()
    led.produce(3)
    rows = session.fetch(throttle=lambda partition, replica_id: (partition, replica_id) == (led.partition, 2))
    assert [row.length for row in rows] in ([], [0])
    [row] = session.fetch()
    assert row.length > 0
