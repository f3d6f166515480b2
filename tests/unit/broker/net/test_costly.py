"""Who is served when: cheap connections as they come, costly ones one after the other."""

import asyncio

import pytest

from broker.net.costly import SLICE_SECONDS, CostlyTurns
from protocol.api_keys import ApiKey
from tests.support.logs import FixedClock

METADATA = ApiKey.METADATA << 16


class Peer:
    """A connection that is served for a given time once it is its turn."""

    def __init__(self, served, clock, costly, slice_ms=0):
        self.costly = costly
        self._served, self._clock, self._slice_ms = served, clock, slice_ms

    def resume(self):
        self._clock.ms += self._slice_ms
        self._served.append(self)


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@pytest.fixture
def clock():
    return FixedClock()


def one_pass(loop):
    loop.call_soon(loop.stop)
    loop.run_forever()


def test_as_long_as_nobody_was_costly_everybody_is_served(loop, clock):
    turns = CostlyTurns(loop, clock)
    assert turns.may_serve(Peer([], clock, None), METADATA)
    assert turns.may_serve(Peer([], clock, True), METADATA)


def test_once_the_slice_of_a_pass_is_used_up_new_and_costly_ones_wait(loop, clock):
    turns = CostlyTurns(loop, clock)
    turns.spent(SLICE_SECONDS)
    for costly in (None, True):
        assert not turns.may_serve(Peer([], clock, costly), METADATA)
        assert turns.may_serve(Peer([], clock, costly), ApiKey.API_VERSIONS << 16 | 3)
    one_pass(loop)
    assert turns.may_serve(Peer([], clock, None), METADATA)


def test_costly_ones_go_one_in_a_pass_in_their_order_and_new_ones_before_them(loop, clock):
    served = []
    turns = CostlyTurns(loop, clock)
    costly = [Peer(served, clock, True, slice_ms=10) for _ in range(3)]
    new = Peer(served, clock, None, slice_ms=10)
    for each in (*costly, new):
        turns.wait(each)
    assert not turns.may_serve(Peer(served, clock, True), METADATA)
    for count in range(1, 5):
        one_pass(loop)
        assert len(served) == count
    assert served == [new, *costly]


def test_quick_ones_go_many_in_a_pass(loop, clock):
    served = []
    turns = CostlyTurns(loop, clock)
    waiting = [Peer(served, clock, True) for _ in range(50)]
    for each in waiting:
        turns.wait(each)
    one_pass(loop)
    assert served == waiting


def test_who_is_lost_has_no_turn(loop, clock):
    served = []
    turns = CostlyTurns(loop, clock)
    gone, stays = Peer(served, clock, True), Peer(served, clock, True)
    turns.wait(gone)
    turns.wait(stays)
    turns.leave(gone)
    one_pass(loop)
    assert served == [stays]
