"""A remembered heartbeat is answered as a decoded one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.handlers.heartbeat_shape import HeartbeatShape
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.support.net_broker import Client, NetBroker, decode, frame
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, join, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[NetBroker]:
    with NetBroker(tmp_path, NO_DELAY) as running:
        yield running


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[bool | None]:
    """What `serve` said each time."""
    told: list[bool | None] = []
    serve = HeartbeatShape.serve

    def noted(self: HeartbeatShape, *args: object) -> bool | None:
        told.append(serve(self, *args))  # type: ignore[arg-type]
        return told[-1]

    monkeypatch.setattr(HeartbeatShape, "serve", noted)
    return told


def beat(
    client: Client, member: str, version: int = 4, generation: int = 1, number: int = 1, group: str = GROUP
) -> int:
    request = m.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
    client.send(frame(request, version, number))
    client.broker.run()
    [(answered, data)] = client.answers()
    assert answered == number & 0xFFFFFFFF
    return int(decode(ApiKey.HEARTBEAT, version, data).error_code)


@pytest.mark.parametrize("version", range(5))
def test_the_second_one_is_known(broker: NetBroker, served: list[bool | None], version: int) -> None:
    member, client = settle(broker), broker.connect()
    for number in (1, 2, 2**31 - 1, -(2**31)):
        assert beat(client, member, version, number=number) == ErrorCode.NONE
    assert served == [True, True, True]


def test_it_is_told_of_a_rebalance_and_of_its_end(broker: NetBroker, served: list[bool | None]) -> None:
    member, client = settle(broker), broker.connect()
    beat(client, member)
    broker.post(join(), 3)
    assert beat(client, member) == ErrorCode.REBALANCE_IN_PROGRESS
    broker.call(join(member), 3)
    assert beat(client, member) == ErrorCode.ILLEGAL_GENERATION
    assert served == [True, True]
    assert beat(client, member, generation=2) == ErrorCode.NONE
    assert beat(client, member, generation=2) == ErrorCode.NONE
    assert beat(client, "stranger", generation=2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert served[-1] is True
    assert len(served) == 3


def test_it_keeps_the_session(broker: NetBroker, served: list[bool | None]) -> None:
    member, client = settle(broker), broker.connect()
    beat(client, member)
    manager = broker.ctx.groups.manager()
    known = manager.runtime.read(
        manager.partition_of(GROUP), lambda shard: shard.groups[GROUP].members[member]
    )
    known.session_deadline_ms = 0
    beat(client, member)
    assert served == [True]
    assert known.session_deadline_ms > broker.ctx.env.clock.now_ms()


def test_a_group_that_has_gone_is_for_the_decoder(broker: NetBroker, served: list[bool | None]) -> None:
    member, client = settle(broker), broker.connect()
    beat(client, member)
    broker.call(m.LeaveGroupRequest(group_id=GROUP, member_id=member), 2)
    assert beat(client, member) == ErrorCode.UNKNOWN_MEMBER_ID
    broker.call(m.DeleteGroupsRequest(groups_names=[GROUP]), 2)
    assert beat(client, member) == ErrorCode.UNKNOWN_MEMBER_ID
    broker.ctx.groups.close()
    assert beat(client, member) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert served == [True, None, None]


def test_two_members_on_one_connection(broker: NetBroker, served: list[bool | None]) -> None:
    client, first = broker.connect(), settle(broker)
    beat(client, first)
    assert beat(client, first, group="other") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(client, first) == ErrorCode.NONE
    assert served == [True]


def test_only_good_ones_are_remembered(broker: NetBroker, served: list[bool | None]) -> None:
    member, client = settle(broker), broker.connect()
    for _ in range(2):
        assert beat(client, member, generation=7) == ErrorCode.ILLEGAL_GENERATION
    assert served == []
