"""Deadlines of parked fetches."""

from __future__ import annotations

import asyncio

from replication.deadline_buckets import WIDTH_MS, DeadlineBuckets
from tests.unit.replication.cluster import Parked


class Loop:
    """As much of an event loop as buckets need."""

    def __init__(self):
        self.now, self.calls = 100.0, []

    def time(self):
        return self.now

    def call_at(self, when, callback, *args):
        self.calls.append((when, callback, args))

    def advance(self, seconds):
        self.now += seconds
        due = sorted((call for call in self.calls if call[0] <= self.now), key=lambda call: call[0])
        self.calls = [call for call in self.calls if call[0] > self.now]
        for _, callback, args in due:
            callback(*args)


def test_never_early_and_at_most_a_width_late():
    for wait_ms in (0, 1, 9, 10, 11, 500):
        loop = Loop()
        loop.now += 0.0037
        buckets, waiter = DeadlineBuckets(loop), Parked()
        buckets.add(waiter, wait_ms)
        when = loop.calls[0][0]
        assert wait_ms / 1000 <= when - loop.now <= (wait_ms + WIDTH_MS) / 1000 + 1e-9


def test_waiters_of_one_bucket_share_one_call():
    loop = Loop()
    buckets = DeadlineBuckets(loop)
    waiters = [Parked() for _ in range(1000)]
    for waiter in waiters:
        buckets.add(waiter, 500)
    assert len(loop.calls) == 1
    assert len(buckets) == 1000
    loop.advance(0.6)
    assert [waiter.expired for waiter in waiters] == [1] * 1000
    assert len(buckets) == 0
    assert loop.calls == []


def test_who_left_the_bucket_does_not_expire():
    loop = Loop()
    buckets, gone, stays = DeadlineBuckets(loop), Parked(), Parked()
    bucket = buckets.add(gone, 50)
    buckets.add(stays, 50)
    bucket.pop(gone, None)
    loop.advance(0.1)
    assert (gone.expired, stays.expired) == (0, 1)


def test_one_that_expires_may_take_out_the_next_and_park_anew():
    loop = Loop()
    buckets, second = DeadlineBuckets(loop), Parked()
    bucket = {}

    class First(Parked):
        def expire(self):
            super().expire()
            bucket.pop(second, None)
            buckets.add(self, 1000)

    first = First()
    bucket = buckets.add(first, 50)
    buckets.add(second, 50)
    loop.advance(0.1)
    assert (first.expired, second.expired) == (1, 0)
    assert len(buckets) == 1


def test_on_a_real_loop():
    async def main():
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        class Waiter(Parked):
            def expire(self):
                done.set_result(loop.time())

        began = loop.time()
        DeadlineBuckets(loop).add(Waiter(), 20)
        assert await asyncio.wait_for(done, 60) - began >= 0.02

    asyncio.run(main())


class Failing(Parked):
    def expire(self):
        raise RuntimeError("a fault of one request")


def test_one_that_fails_takes_nothing_from_the_others(caplog):
    loop = Loop()
    buckets = DeadlineBuckets(loop)
    first, last = Parked(), Parked()
    for waiter in (first, Failing(), last):
        buckets.add(waiter, 500)
    loop.advance(0.6)
    assert (first.expired, last.expired, len(buckets)) == (1, 1, 0)
    assert "a fault of one request" in caplog.text
