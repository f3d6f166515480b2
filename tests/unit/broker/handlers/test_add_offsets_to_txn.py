"""AddOffsetsToTxn: a group's partition becomes part of a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.placement import partition_for
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.transaction_requests import FEW, coordinate, init, state


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, FEW) as running:
        coordinate(running)
        yield running


@pytest.mark.parametrize("version", range(5))
def test_every_version_adds_the_partition_of_the_group(broker: HandlerBroker, version: int) -> None:
    request = m.AddOffsetsToTxnRequest(**init(broker), group_id="group")
    assert broker.call(request, version).error_code == 0
    [topic] = state(broker).topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", [partition_for("group", 2)])


def test_who_may_not(broker: HandlerBroker) -> None:
    producer = init(broker)
    init(broker)
    request = m.AddOffsetsToTxnRequest(**producer, group_id="group")
    assert broker.call(request, 2).error_code == E.PRODUCER_FENCED
    assert broker.call(request, 1).error_code == E.INVALID_PRODUCER_EPOCH
    request.transactional_id = "nobody"
    assert broker.call(request, 2).error_code == E.INVALID_PRODUCER_ID_MAPPING
