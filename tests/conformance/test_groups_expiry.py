"""Offsets that are over (coordinators.md 2.5, 7.46, 7.47). One broker of each kind looks for them often."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.group_member import Member, await_coordinator, reach, subscription
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NewMember = Callable[..., Member]
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.retention.check.interval.ms": "100",
    "offsets.topic.num.partitions": "3",
}

_numbers = itertools.count()


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param(overrides=SETTINGS) as running:
        yield running.bootstrap_servers


@pytest.fixture
def new_member(servers: str) -> Iterator[NewMember]:
    group = f"g{next(_numbers)}"
    with WireClient(servers) as wire:  # each partition of the offsets is loaded by itself
        await_coordinator(wire, group)
    with ExitStack() as members:
        yield lambda **fields: members.enter_context(Member(servers, group, **fields))


def test_a_retention_of_its_own(servers: str, new_member: NewMember) -> None:
    """Versions 2 to 4 may say how long; the group goes with its last offset."""
    short, kept = new_member(), new_member()
    kept.group += "-kept"
    with WireClient(servers) as wire:
        wire.create_topic("retained")
        await_coordinator(wire, kept.group)
    assert kept.commit("retained", 1, version=5) == ErrorCode.NONE
    assert short.commit("retained", 1, version=4, retention_time_ms=1) == ErrorCode.NONE
    wait_until(lambda: short.describe(6).error_code == ErrorCode.GROUP_ID_NOT_FOUND, "the end of the offset")
    assert kept.describe(6).error_code == ErrorCode.NONE


def test_offsets_that_members_need_are_kept(servers: str, new_member: NewMember) -> None:
    with WireClient(servers) as wire:
        wire.create_topic("needed")
        wire.create_topic("not-needed")
    member = new_member(protocols=[("range", subscription("needed"))])
    member.enter(3)  # without an id first: Kafka's expiry takes a group that only expects somebody
    assert member.sync({}).error_code == ErrorCode.NONE
    for topic in ("needed", "not-needed"):
        assert member.commit(topic, 1, version=4, retention_time_ms=1) == ErrorCode.NONE

    def left() -> set[str]:
        request = m.OffsetFetchRequest(group_id=member.group, topics=None)
        return {topic.name for topic in member.wire.send(request, 7).topics}

    wait_until(lambda: left() == {"needed"}, "the end of the other topic's offset")
    reach(member, "Stable")
