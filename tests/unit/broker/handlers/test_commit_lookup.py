"""What a commit names, looked up at once or in pieces: every partition is answered, in order, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from runtime.pieces import AT_ONCE
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, coordinate, fetched

PARTITIONS = 3
MISSING = E.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        running.create("a", PARTITIONS)
        coordinate(running)
        yield running


def asked(kind: Any, topics: list[tuple[str, list[int]]], offset: int) -> Any:
    """A commit of one offset for all of them, by nobody in particular."""
    name = kind.__name__
    topic, partition = (getattr(kind, name + each) for each in ("Topic", "Partition"))
    return kind(
        group_id=GROUP,
        topics=[
            topic(
                name=at, partitions=[partition(partition_index=i, committed_offset=offset) for i in indexes]
            )
            for at, indexes in topics
        ],
    )


@pytest.mark.parametrize(("kind", "version"), [(m.OffsetCommitRequest, 9), (m.TxnOffsetCommitRequest, 4)])
@pytest.mark.parametrize("again", [1, AT_ONCE], ids=["at once", "in pieces"])
def test_every_partition_is_answered_in_its_place(
    broker: HandlerBroker, kind: Any, version: int, again: int
) -> None:
    topics = [("none", [0]), ("a", [0, -1, PARTITIONS, *[2] * again]), ("a", [])]
    answer = broker.call(asked(kind, topics, 5), version)
    assert [
        (topic.name, [each.partition_index for each in topic.partitions]) for topic in answer.topics
    ] == topics
    errors = [[E(each.error_code) for each in topic.partitions] for topic in answer.topics]
    plain = kind is m.OffsetCommitRequest
    told = E.NONE if plain else E.COORDINATOR_NOT_AVAILABLE  # there is no __transaction_state
    assert errors == [[MISSING], [told, MISSING, MISSING, *[told] * again], []]
    assert fetched(broker, "a") == (5 if plain else -1)
