"""OffsetForLeaderEpoch: protocol.md 4.2, E1."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

Request = m.OffsetForLeaderEpochRequest


def ask(
    broker: HandlerBroker,
    epoch: int,
    version: int = 4,
    topic: str = "t",
    partition: int = 0,
    known: int = -1,
) -> tuple[int, int, int]:
    wanted = Request.OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=known, leader_epoch=epoch
    )
    request = Request(replica_id=-1, topics=[Request.OffsetForLeaderTopic(topic=topic, partitions=[wanted])])
    (answered,) = broker.call(request, version).topics
    (answer,) = answered.partitions
    assert (answered.topic, answer.partition) == (topic, partition)
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize("version", range(5))
def test_the_current_epoch_ends_at_the_log_end(broker: HandlerBroker, version: int) -> None:
    broker.create("t")
    broker.produce("t", 0, [(1, b"a"), (2, b"b")])
    assert ask(broker, 0, version) == (0, 0 if version >= 1 else -1, 2)


def test_unknown_epochs_and_partitions(broker: HandlerBroker) -> None:
    broker.create("t")
    assert ask(broker, 5) == (0, -1, -1)
    assert ask(broker, -1) == (0, -1, -1)
    assert ask(broker, 0) == (0, 0, 0)
    assert ask(broker, 0, known=1) == (75, -1, -1)
    assert ask(broker, 0, known=0) == (0, 0, 0)
    assert ask(broker, 0, topic="nope") == (3, -1, -1)
    assert ask(broker, 0, partition=4) == (3, -1, -1)
