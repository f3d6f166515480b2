"""ListGroups: all of them, and by state and type."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, commit, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    """With a Stable group, and one of offsets alone."""
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        settle(running)
        running.create("t")
        running.call(commit("t", 1, group_id="simple"), 9)
        yield running


def names(broker: HandlerBroker, version: int = 5, **filters: list[str]) -> list[str]:
    answer = broker.call(m.ListGroupsRequest(**filters), version)
    assert answer.error_code == 0
    return sorted(group.group_id for group in answer.groups)


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists(broker: HandlerBroker, version: int) -> None:
    answer = broker.call(m.ListGroupsRequest(), version)
    found = {
        group.group_id: (group.protocol_type, group.group_state, group.group_type) for group in answer.groups
    }
    kind = "classic" if version >= 5 else ""
    states = ("Stable", "Empty") if version >= 4 else ("", "")
    assert found == {GROUP: ("consumer", states[0], kind), "simple": ("", states[1], kind)}


def test_filters(broker: HandlerBroker) -> None:
    both = [GROUP, "simple"]
    assert names(broker, states_filter=["stable"]) == [GROUP]
    assert names(broker, states_filter=["EMPTY", "nonsense"]) == ["simple"]
    assert names(broker, states_filter=["nonsense"]) == []
    assert names(broker, types_filter=["Classic"]) == both
    assert names(broker, types_filter=["consumer"]) == []
    assert names(broker, states_filter=["Empty"], types_filter=["classic"]) == ["simple"]
    assert names(broker, 4, states_filter=["Empty", "Stable"]) == both


def test_without_the_topic_there_are_none(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path / "other") as broker:
        assert names(broker) == []
        broker.ctx.groups.close()
        assert broker.call(m.ListGroupsRequest(), 5).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
