"""SyncGroup: assignments for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import NO_DELAY, coordinate, join, settle, sync


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        yield running


@pytest.mark.parametrize("version", range(6))
def test_every_version_hands_over(broker: HandlerBroker, version: int) -> None:
    coordinate(broker)
    member = broker.call(join(), 3).member_id
    answer = broker.call(sync(member), version)
    assert (answer.error_code, answer.assignment) == (0, b"part")
    named = ("consumer", "range") if version >= 5 else (None, None)
    assert (answer.protocol_type, answer.protocol_name) == named


def test_a_follower_waits_for_the_leader(broker: HandlerBroker) -> None:
    leader = settle(broker)
    joining = broker.post(join(), 3)
    broker.call(join(leader), 3)
    follower = broker.answer(joining).member_id
    waiting = broker.post(sync(follower, 2, None), 5)
    assert not broker.is_answered(waiting)
    assert broker.call(sync(leader, 2), 5).assignment == b"part"
    answer = broker.answer(waiting)
    assert (answer.error_code, answer.assignment) == (0, b"")


def test_a_stop_answers_who_waits(broker: HandlerBroker) -> None:
    leader = settle(broker)
    joining = broker.post(join(), 3)
    broker.call(join(leader), 3)
    waiting = broker.post(sync(broker.answer(joining).member_id, 2, None), 5)
    broker.ctx.groups.close()
    assert broker.answer(waiting).error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("field", ["protocol_type", "protocol_name"])
def test_version_5_has_to_name_the_protocol(broker: HandlerBroker, field: str) -> None:
    member = settle(broker)
    request = sync(member)
    setattr(request, field, None)
    assert broker.call(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert broker.call(request, 4).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(6))
def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker, version: int) -> None:
    answer = broker.call(sync("m"), version)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NOT_COORDINATOR, b"")
