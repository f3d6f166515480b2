"""ShareGroupDescribe through a broker."""

from __future__ import annotations

from pathlib import Path

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.unit.broker.handlers.share_group_requests import join, share_broker, turn_off

NOT_ASKED = -(2**31)


def test_groups_in_the_order_of_the_request_each_with_its_error(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        join(broker)
        request = m.ShareGroupDescribeRequest(group_ids=["b", "g", ""])
        groups = broker.call(request, 1).groups
        assert [each.group_id for each in groups] == ["b", "g", ""]
        assert [each.error_code for each in groups] == [E.GROUP_ID_NOT_FOUND, E.NONE, E.INVALID_GROUP_ID]
        assert groups[0].error_message == "Group b not found."
        assert (groups[1].group_state, groups[1].assignor_name) == ("Stable", "simple")
        assert groups[1].members[0].client_host == "/127.0.0.1"
        assert {each.authorized_operations for each in groups} == {NOT_ASKED}
        request.include_authorized_operations = True
        absent, group, _ = broker.call(request, 1).groups
        assert (absent.authorized_operations, group.authorized_operations > 0) == (NOT_ASKED, True)
        turn_off(broker)
        errors = [each.error_code for each in broker.call(request, 1).groups]
        assert errors == [E.UNSUPPORTED_VERSION] * 3
