"""ConsumerGroupHeartbeat through a broker: what comes in and goes out (the rules are tested beside it)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import coordinate


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path) as running:
        yield running


def join(broker: HandlerBroker, group: str = "g", version: int = 1, member_id: str = "m") -> Any:
    request = m.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    return broker.call(request, version)


def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker) -> None:
    assert join(broker).error_code == E.NOT_COORDINATOR


def test_a_member_joins_and_is_shown_as_it_came(broker: HandlerBroker) -> None:
    coordinate(broker)
    answer = join(broker)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (E.NONE, "m", 2)
    [group] = broker.call(m.ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups
    [member] = group.members
    assert member.client_host.startswith("/")
    assert join(broker, "").error_code == E.INVALID_REQUEST
    assert len(join(broker, "other", 0, "").member_id) == 22


@pytest.mark.parametrize("with_topic", [False, True])
def test_while_the_feature_is_off_it_is_not_served(broker: HandlerBroker, with_topic: bool) -> None:
    if with_topic:
        coordinate(broker)
    broker.ctx.groups.consumer_feature = lambda: False
    assert join(broker).error_code == E.UNSUPPORTED_VERSION
