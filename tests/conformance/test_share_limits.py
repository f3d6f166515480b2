"""What time and the broker's limits do to share groups: locks run out, deliveries are counted, the number of
records in flight and of sessions is bounded, state outlives the broker.

One broker of each kind with small limits serves this module.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol.errors import ErrorCode
from tests.conformance.test_group_configs import listed
from tests.conformance.test_share_group_settings import configure
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.share_member import ACCEPT, REJECT, RELEASE, RENEW, ShareMember, initialize
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

LOCK_S = 1.0
RENEWED_S = 2.0  # of a lock for whose end somebody may not be late
LIMIT = 2
LOCKS = 100
SESSIONS = 3
SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": str(LIMIT),
    "group.share.partition.max.record.locks": str(LOCKS),
    "group.share.max.share.sessions": str(SESSIONS),
    "group.share.max.size": str(SESSIONS),
    "share.coordinator.state.topic.num.partitions": "3",
}
_numbers = itertools.count()


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Iterator[OttlaProcess | KafkaProcess]:
    with request.param(overrides=SETTINGS) as running:
        yield running


@pytest.fixture
def wire(broker: OttlaProcess | KafkaProcess) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap_servers) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"share-limits-{next(_numbers)}"


@pytest.fixture
def member(wire: WireClient, topic: str) -> Iterator[Callable[..., ShareMember]]:
    """Makes members, and ends their sessions: Kafka ends but one with a connection that had several."""
    topic_id = wire.create_topic(topic)
    initialize(wire, topic, topic_id)
    members: list[ShareMember] = []

    def make(member_id: str = "ann", **fields: Any) -> ShareMember:
        members.append(ShareMember(fields.pop("wire", wire), topic, topic_id, member_id, **fields))
        return members[-1]

    yield make
    for each in members:
        if each.wire is wire:
            each.fetch(epoch=-1)


def lock_shortly(wire: WireClient, member: ShareMember, lock_s: float = LOCK_S) -> None:
    """Locks of the group that begin from now on last for so long. Others do not run out in a test."""
    assert configure(wire, member.group, share_record_lock_duration_ms=f"{lock_s * 1000:.0f}") == 0
    wait_until(lambda: member.group in listed(wire), "the settings to count")


def produce(wire: WireClient, topic: str, count: int) -> None:
    wire.produce_values(topic, *(b"x" for _ in range(count)))


def test_a_lock_runs_out_and_the_delivery_counts(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 3)
    ann = member()
    lock_shortly(wire, ann)
    began = time.monotonic()
    assert ann.fetch_until() == [(0, 2, 1)]
    assert ann.fetch_until(max_wait_ms=3000) == [(0, 2, 2)]
    assert time.monotonic() - began > 0.95 * LOCK_S


def test_who_comes_too_late_is_121(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    produce(wire, topic, 2)
    ann = member()
    lock_shortly(wire, ann)
    assert ann.fetch_until() == [(0, 1, 1)]
    time_out(ann)
    assert ann.ack_error((0, 1, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE


def time_out(member: ShareMember) -> None:
    """Wait until the member's records are nobody's: an acknowledgement that cannot be right tells."""
    other = ShareMember(member.wire, member.group, member.topic_id, "nobody")
    other.fetch(max_wait_ms=0, max_records=0)

    def free() -> bool:
        answer = other.acknowledge((0, 0, ACCEPT))
        text = answer.responses[0].partitions[0].error_message or ""
        return "not in the acquired state" in text or "not acquired" in text

    wait_until(free, "expired locks")
    other.fetch(epoch=-1)


def test_at_the_delivery_limit_records_are_archived(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 2)
    ann = member()
    assert ann.fetch_until() == [(0, 1, 1)]
    assert ann.ack_error((0, 0, RELEASE)) == 0
    assert ann.fetch().acquired == [(0, 0, 2)]
    assert ann.ack_error((0, 0, RELEASE)) == 0
    lock_shortly(wire, ann)
    assert ann.ack_error((1, 1, RENEW), is_renew_ack=True) == 0
    assert ann.fetch_until(max_wait_ms=3000) == [(1, 1, 2)]  # by time-out, and record 0 does not come back
    time_out_at(ann, 1)
    produce(wire, topic, 1)
    assert ann.fetch_until() == [(2, 2, 1)]
    assert ann.ack_error((0, 1, REJECT)) == 0  # the start has moved past them


def time_out_at(member: ShareMember, offset: int) -> None:
    """Wait until the start has moved past an offset."""
    other = ShareMember(member.wire, member.group, member.topic_id, "nobody")
    other.fetch(max_wait_ms=0, max_records=0)
    wait_until(lambda: other.ack_error((offset, offset, ACCEPT)) == 0, "a moved start")
    other.fetch(epoch=-1)


def test_a_renewed_lock_lasts(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    """Where a renewal comes too late for its lock, another group does it again."""
    topic_id = member().topic_id
    produce(wire, topic, 2)

    def renewed_in_time() -> bool:
        group = f"{topic}-{next(_numbers)}"
        initialize(wire, group, topic_id)
        ann, bob = (ShareMember(wire, group, topic_id, each) for each in ("ann", "bob"))
        lock_shortly(wire, ann, RENEWED_S)
        bob.fetch(max_wait_ms=0, max_records=0)
        asked = time.monotonic()
        until = asked + 2.5 * RENEWED_S
        assert ann.fetch_until() == [(0, 1, 1)]
        in_time, told = True, 0
        while in_time and time.monotonic() < until:
            assert told == 0
            since, asked = asked, time.monotonic()
            told = ann.ack_error((0, 0, RENEW), is_renew_ack=True)
            in_time = time.monotonic() - since < RENEWED_S
            wire.fetch(topic, 2, max_wait_ms=200)  # waits, as there is no such record
        others, done = bob.fetch().acquired, ann.ack_error((0, 0, ACCEPT))
        in_time = in_time and time.monotonic() - asked < RENEWED_S
        for each in (ann, bob):
            each.fetch(epoch=-1)
        assert not in_time or (told, others, done) == (0, [(1, 1, 2)], 0)
        return in_time

    wait_until(renewed_in_time, "renewals in time")


def test_only_so_many_records_are_in_flight(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    for _ in range(6):
        produce(wire, topic, 30)
    ann, bob = member("ann"), member("bob")
    assert ann.fetch_until() == [(0, 119, 1)]  # up to the end of the batch with the hundredth
    assert bob.fetch(max_wait_ms=100).acquired == []
    assert ann.ack_error((0, 29, ACCEPT)) == 0
    assert bob.fetch_until() == [(120, 149, 1)]
    assert ann.ack_error((40, 44, RELEASE)) == 0
    assert bob.fetch_until() == [(40, 44, 2)]


def test_the_table_of_sessions_is_bounded(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    members = [member(f"m{number}") for number in range(SESSIONS)]
    for each in members:
        assert each.fetch(max_wait_ms=0).error == 0
    late = member("late")
    began = time.monotonic()
    assert late.fetch(max_wait_ms=400).error == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert time.monotonic() - began > 0.35  # told when the waiting time is over
    assert members[0].fetch(epoch=-1).error == 0
    assert late.fetch(max_wait_ms=0).error == 0


def test_state_outlives_the_broker(
    broker: OttlaProcess | KafkaProcess, wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 4)
    produce(wire, topic, 2)
    with WireClient(broker.bootstrap_servers) as first:
        ann = member(wire=first)
        assert ann.fetch_until(max_records=1) == [(0, 3, 1)]
        assert ann.ack_error((0, 0, ACCEPT), (2, 2, RELEASE), (3, 3, REJECT)) == 0
        broker.stop()
    broker.start()
    with WireClient(broker.bootstrap_servers) as other:
        cat = member("cat", wire=other)
        got = cat.fetch_until(max_records=1)
        while got[-1][1] < 5:
            got += cat.fetch_until(max_records=1)
        assert got == [(1, 1, 1), (2, 2, 2), (4, 5, 1)]  # what was not stored counts anew
