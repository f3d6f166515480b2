"""LeaveGroup: one member or many, and an answer that holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        yield running


def leave(*members: str) -> m.LeaveGroupRequest:
    identity = m.LeaveGroupRequest.MemberIdentity
    return m.LeaveGroupRequest(
        group_id=GROUP, members=[identity(member_id=member, reason="done") for member in members]
    )


@pytest.mark.parametrize("version", range(3))
def test_one_member_and_its_error_on_top(broker: HandlerBroker, version: int) -> None:
    member = settle(broker)
    for name, error in ((member, ErrorCode.NONE), (member, ErrorCode.UNKNOWN_MEMBER_ID)):
        answer = broker.call(m.LeaveGroupRequest(group_id=GROUP, member_id=name), version)
        assert (answer.error_code, answer.members) == (error, [])


@pytest.mark.parametrize("version", range(3, 6))
def test_many_and_an_error_for_each(broker: HandlerBroker, version: int) -> None:
    member = settle(broker)
    answer = broker.call(leave("stranger", member) if version >= 5 else _without_reason(member), version)
    assert answer.error_code == ErrorCode.NONE
    assert [(each.member_id, each.error_code) for each in answer.members] == [
        ("stranger", ErrorCode.UNKNOWN_MEMBER_ID),
        (member, ErrorCode.NONE),
    ]


def _without_reason(member: str) -> m.LeaveGroupRequest:
    request = leave("stranger", member)
    for each in request.members:
        each.reason = None
    return request


def test_the_answer_waits_until_the_empty_group_is_written(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, NO_DELAY) as broker:
        member = settle(broker)
        broker.call(leave(member), 5)
        partition = broker.ctx.groups.manager().partition_of(GROUP)
        log = broker.ctx.replicas.get("__consumer_offsets", partition)
        assert log is not None
        assert log.log.high_watermark == log.log.end_offset == 2  # Stable, then Empty


@pytest.mark.parametrize("version", range(6))
def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker, version: int) -> None:
    request = m.LeaveGroupRequest(group_id=GROUP, member_id="m") if version < 3 else leave()
    answer = broker.call(request, version)
    assert (answer.error_code, answer.members) == (ErrorCode.NOT_COORDINATOR, [])
