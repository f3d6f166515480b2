"""JoinGroup: what reaches the group, and when the answer leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, coordinate, join, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        yield running


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins(broker: HandlerBroker, version: int) -> None:
    coordinate(broker)
    answer = broker.call(join(), version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = broker.call(join(answer.member_id), version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("test-")
    [listed] = answer.members
    assert (listed.member_id, listed.metadata) == (answer.member_id, b"meta")


def test_the_client_is_shown_as_it_came(broker: HandlerBroker) -> None:
    settle(broker)
    [group] = broker.call(m.DescribeGroupsRequest(groups=[GROUP]), 5).groups
    assert [(member.client_id, member.client_host) for member in group.members] == [("test", "/127.0.0.1")]


def test_the_answer_waits_for_the_other_members(broker: HandlerBroker) -> None:
    first = settle(broker)
    second = broker.post(join(), 3)
    assert not broker.is_answered(second)
    assert broker.call(join(first), 3).generation_id == 2
    assert broker.answer(second).generation_id == 2


def test_a_stop_answers_who_waits(broker: HandlerBroker) -> None:
    settle(broker)
    waiting = broker.post(join(), 3)
    assert not broker.is_answered(waiting)
    broker.ctx.groups.close()
    answer = broker.answer(waiting)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert broker.call(join(), 3).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", range(10))
def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker, version: int) -> None:
    answer = broker.call(join("m"), version)
    assert (answer.error_code, answer.member_id, answer.generation_id) == (16, "m", -1)
    assert answer.protocol_name == (None if version >= 7 else "")


def test_a_group_needs_a_name(broker: HandlerBroker) -> None:
    assert broker.call(join(group_id=""), 9).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(("length", "error"), [(32730, ErrorCode.NONE), (32731, ErrorCode.INVALID_REQUEST)])
def test_an_id_must_fit_behind_the_instances_name(
    broker: HandlerBroker, length: int, error: ErrorCode
) -> None:
    coordinate(broker)
    answer = broker.call(join(group_instance_id="i" * length), 9)
    assert answer.error_code == error
    if not error:
        assert len(answer.member_id) == 32767
