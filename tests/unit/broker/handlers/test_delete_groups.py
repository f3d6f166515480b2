"""DeleteGroups: a result for each name, when all of them are there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import AT_ONCE, Pieces
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


def test_big_groups_go_one_after_the_other(broker: HandlerBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a pass of the loop of its own."""
    settle(broker)
    count = AT_ONCE // 2 + 1
    broker.create("big", count)
    request = m.OffsetCommitRequest
    place = request.OffsetCommitRequestPartition
    places = [place(partition_index=index, committed_offset=1) for index in range(count)]
    for name in ("one", "two"):
        topics = [request.OffsetCommitRequestTopic(name="big", partitions=places)]
        broker.call(request(group_id=name, topics=topics), 9)
    manager, turn = broker.ctx.groups.manager(), Pieces.turn
    there: list[int] = []

    def watched(pieces: Pieces) -> asyncio.Future[None]:
        there.append(sum(len(shard.offsets.groups()) for shard in manager.runtime.read_all(lambda s: s)))
        return turn(pieces)

    monkeypatch.setattr(Pieces, "turn", watched)
    assert delete(broker, "one", "two") == dict.fromkeys(("one", "two"), ErrorCode.NONE)
    assert there == [2, 1]


def test_nothing_to_delete(broker: HandlerBroker) -> None:
    assert delete(broker) == {}


def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker) -> None:
    assert delete(broker, "one", "two") == dict.fromkeys(("one", "two"), ErrorCode.NOT_COORDINATOR)
