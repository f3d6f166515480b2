"""DescribeGroups: groups that are there, absent ones, and operations on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.handlers.repeats import REPEATS_MAX
from broker.security.operations import GROUP_OPERATIONS, NOT_ASKED
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        yield running


@pytest.mark.parametrize("version", range(7))
def test_one_that_is_there_and_one_that_is_not(broker: HandlerBroker, version: int) -> None:
    member = settle(broker)
    there, absent = broker.call(m.DescribeGroupsRequest(groups=[GROUP, "absent"]), version).groups
    assert (there.error_code, there.group_id, there.group_state) == (0, GROUP, "Stable")
    assert (there.protocol_type, there.protocol_data) == ("consumer", "range")
    [shown] = there.members
    assert (shown.member_id, shown.member_metadata, shown.member_assignment) == (member, b"meta", b"part")
    assert (absent.group_id, absent.group_state, absent.members) == ("absent", "Dead", [])
    assert absent.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE)
    assert absent.error_message == ("Group absent not found." if version >= 6 else None)


def test_a_name_that_is_repeated_is_told_again_to_a_bound(broker: HandlerBroker) -> None:
    settle(broker)
    answer = broker.call(m.DescribeGroupsRequest(groups=[GROUP, "absent", GROUP, "absent"]), 5)
    assert [group.group_id for group in answer.groups] == [GROUP, "absent", GROUP, "absent"]
    answer = broker.call(m.DescribeGroupsRequest(groups=[GROUP] * 1000), 5)
    assert [group.group_id for group in answer.groups] == [GROUP] * REPEATS_MAX


@pytest.mark.parametrize("version", range(3, 7))
def test_operations_are_told_when_asked_for(broker: HandlerBroker, version: int) -> None:
    settle(broker)
    for include in (False, True):
        request = m.DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=include)
        [found] = broker.call(request, version).groups
        assert found.authorized_operations == (GROUP_OPERATIONS if include else NOT_ASKED)


def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker) -> None:
    request = m.DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=True)
    [found] = broker.call(request, 5).groups
    assert (found.error_code, found.group_id) == (ErrorCode.NOT_COORDINATOR, GROUP)
    assert found.authorized_operations == NOT_ASKED
