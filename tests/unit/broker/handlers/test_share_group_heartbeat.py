"""ShareGroupHeartbeat through a broker (the rules are tested in coordinator/group/share)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_group_requests import join, share_broker, turn_off


def test_a_member_joins_and_has_its_partitions_with_a_later_heartbeat(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        answer = join(broker)
        assert (answer.error_code, answer.member_id, answer.member_epoch) == (E.NONE, "a", 2)
        assert answer.assignment.topic_partitions == []
        for _ in range(50):
            broker.runner.run(asyncio.sleep(0))
            answer = join(broker)
            if answer.assignment.topic_partitions:
                break
        [topic] = answer.assignment.topic_partitions
        assert (answer.member_epoch, topic.partitions) == (3, [0, 1])
        leave = m.ShareGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=-1)
        assert broker.call(leave, 1).member_epoch == -1


def test_member_ids_are_of_a_certain_length(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        for member_id in ("", "m" * 37):
            answer = join(broker, member_id)
            assert (answer.error_code, answer.error_message) == (E.INVALID_REQUEST, None)
        assert join(broker, "m" * 36).error_code == E.NONE


def test_without_a_coordinator_and_without_the_feature(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        assert join(broker).error_code == E.NOT_COORDINATOR
        turn_off(broker)
        answer = join(broker)
        assert (answer.error_code, answer.error_message) == (E.UNSUPPORTED_VERSION, None)
