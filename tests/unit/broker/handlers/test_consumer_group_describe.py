"""ConsumerGroupDescribe through a broker."""

from __future__ import annotations

from pathlib import Path

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import coordinate
from tests.unit.broker.handlers.test_consumer_group_heartbeat import join

NOT_ASKED = -(2**31)


def test_groups_in_the_order_of_the_request_each_with_its_error(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        request = m.ConsumerGroupDescribeRequest(group_ids=["b", "a", ""])
        before = broker.call(request, 0).groups
        assert [each.error_code for each in before] == [E.NOT_COORDINATOR] * 2 + [E.INVALID_GROUP_ID]
        coordinate(broker)
        join(broker, "a")
        groups = broker.call(request, 0).groups
        assert [each.group_id for each in groups] == ["b", "a", ""]
        assert [each.error_code for each in groups] == [E.GROUP_ID_NOT_FOUND, E.NONE, E.INVALID_GROUP_ID]
        assert groups[0].error_message == "Group b not found."
        assert groups[1].group_state == "Stable"
        assert {each.authorized_operations for each in groups} == {NOT_ASKED}
        asked = m.ConsumerGroupDescribeRequest(group_ids=["a", "b"], include_authorized_operations=True)
        group, absent = broker.call(asked, 1).groups
        assert (group.authorized_operations > 0, absent.authorized_operations) == (True, NOT_ASKED)
