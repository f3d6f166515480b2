"""Heartbeat: the errors of the group, and none while it is loading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.result import CoordinatorError
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, join, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        yield running


def beat(
    broker: HandlerBroker, member: str, generation: int = 1, version: int = 4, group: str = GROUP
) -> int:
    request = m.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)
    return int(broker.call(request, version).error_code)


@pytest.mark.parametrize("version", range(5))
def test_every_version_beats(broker: HandlerBroker, version: int) -> None:
    member = settle(broker)
    assert beat(broker, member, version=version) == ErrorCode.NONE
    assert beat(broker, member, 0, version) == ErrorCode.ILLEGAL_GENERATION
    assert beat(broker, "stranger", 1, version) == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(broker, member, 1, version, "absent") == ErrorCode.UNKNOWN_MEMBER_ID
    assert beat(broker, member, 1, version, "") == ErrorCode.INVALID_GROUP_ID


def test_it_tells_of_a_rebalance(broker: HandlerBroker) -> None:
    member = settle(broker)
    broker.post(join(), 3)
    assert beat(broker, member) == ErrorCode.REBALANCE_IN_PROGRESS


def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker) -> None:
    assert beat(broker, "m") == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_group_that_is_loading_is_no_reason_to_go(
    broker: HandlerBroker, monkeypatch: pytest.MonkeyPatch, refused: ErrorCode, told: ErrorCode
) -> None:
    member = settle(broker)

    def refuse(*_: object) -> None:
        raise CoordinatorError(refused)

    monkeypatch.setattr(broker.ctx.groups.manager().runtime, "shard", refuse)
    assert beat(broker, member) == told
