"""DeleteGroups: a result for each name, when all of them are there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, commit, fetched, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        running.create("t")
        yield running


def delete(broker: HandlerBroker, *groups: str, version: int = 3) -> dict[str, int]:
    answer = broker.call(m.DeleteGroupsRequest(groups_names=list(groups)), version)
    found = {each.group_id: each.error_code for each in answer.results}
    assert len(found) == len(answer.results)
    return found


@pytest.mark.parametrize("version", range(4))
def test_every_version_deletes(broker: HandlerBroker, version: int) -> None:
    settle(broker)
    for name in ("one", "two"):
        broker.call(commit("t", 5, group_id=name), 9)
    assert delete(broker, "one", GROUP, "absent", "two", "one", version=version) == {
        "one": ErrorCode.NONE,
        GROUP: ErrorCode.NON_EMPTY_GROUP,
        "absent": ErrorCode.GROUP_ID_NOT_FOUND,
        "two": ErrorCode.NONE,
    }
    assert fetched(broker, "t", "one") == -1
    assert delete(broker, "one") == {"one": ErrorCode.GROUP_ID_NOT_FOUND}


def test_nothing_to_delete(broker: HandlerBroker) -> None:
    assert delete(broker) == {}


def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker) -> None:
    assert delete(broker, "one", "two") == dict.fromkeys(("one", "two"), ErrorCode.NOT_COORDINATOR)
