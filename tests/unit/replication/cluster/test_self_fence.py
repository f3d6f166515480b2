"""Refusing acks 0 and 1 without contact to the store."""

from __future__ import annotations

from replication.cluster.self_fence import SelfFence


class Broker:
    def __init__(self):
        self.now_ms = self.contact_ms = 10_000
        self.told = []
        self.fence = SelfFence(lambda: 2_000, lambda: self.now_ms, lambda: self.contact_ms, self.told.append)

    def after(self, ms):
        self.now_ms += ms
        self.fence.look()
        return self.fence.fenced


def test_it_fences_after_the_session_time_out_and_tells_once():
    broker = Broker()
    assert not broker.after(2_000)
    assert broker.told == []
    assert broker.after(1)
    assert broker.after(100)
    assert broker.told == [True]


def test_contact_releases():
    broker = Broker()
    broker.after(5_000)
    broker.contact_ms = broker.now_ms
    assert not broker.after(1)
    assert broker.told == [True, False]


def test_after_the_end_of_a_session_the_roles_have_to_come_anew():
    broker = Broker()
    broker.fence.session_ended()
    assert broker.after(1)
    broker.contact_ms = broker.now_ms
    assert broker.after(1)
    broker.fence.roles_came()
    assert broker.told == [True, False]


def test_roles_alone_do_not_release_a_broker_without_contact():
    broker = Broker()
    broker.fence.session_ended()
    broker.now_ms += 5_000
    broker.fence.roles_came()
    assert broker.told == [True]
    broker.contact_ms = broker.now_ms
    assert not broker.after(1)
