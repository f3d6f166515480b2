"""DeleteShareGroupOffsets through a broker, and DeleteGroups of a share group."""

from __future__ import annotations

from pathlib import Path

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.unit.broker.handlers.share_group_requests import (
    alter,
    delete,
    describe,
    rows,
    share_broker,
    turn_off,
)


def test_topics_are_forgotten(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        assert delete(broker, "t").error_code == E.GROUP_ID_NOT_FOUND
        alter(broker, p0=7)
        answer = delete(broker, "t", "absent")
        assert [(each.topic_name, each.error_code) for each in answer.responses] == [
            ("t", E.NONE),
            ("absent", E.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        assert describe(broker).topics == []
        turn_off(broker)
        assert delete(broker, "t").error_code == E.UNSUPPORTED_VERSION


def test_a_deleted_group_has_no_state(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        alter(broker, p0=7)
        [result] = broker.call(m.DeleteGroupsRequest(groups_names=["g"]), 2).results
        assert result.error_code == E.NONE
        assert rows(describe(broker, t=[0])) == {("t", 0): (-1, -1)}
        assert broker.call(m.ListGroupsRequest(), 5).groups == []
