"""DeleteRecords: protocol.md 4.4, DR1."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

Request = m.DeleteRecordsRequest


def delete(
    broker: HandlerBroker, offset: int, topic: str = "t", partition: int = 0, version: int = 2
) -> tuple[int, int]:
    wanted = Request.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = Request(topics=[Request.DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=60_000)
    (answered,) = broker.call(request, version).topics
    (answer,) = answered.partitions
    assert (answered.name, answer.partition_index) == (topic, partition)
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_the_start_moves_up_and_never_down(broker: HandlerBroker, version: int) -> None:
    broker.create("t")
    broker.produce("t", 0, [(1, b"a"), (2, b"b"), (3, b"c")])
    assert delete(broker, 2, version=version) == (0, 2)
    assert delete(broker, 1, version=version) == (0, 2)
    assert delete(broker, -1, version=version) == (0, 3)
    assert broker.ctx.replicas.get("t", 0).log.start_offset == 3


def test_what_is_refused(broker: HandlerBroker) -> None:
    broker.create("t")
    broker.create("compacted", configs={"cleanup.policy": "compact"})
    broker.produce("t", 0, [(1, b"a")])
    assert delete(broker, -2) == (1, -1)
    assert delete(broker, 2) == (1, -1)
    assert delete(broker, 0, "nope") == (3, -1)
    assert delete(broker, 0, "t", 7) == (3, -1)
    assert delete(broker, 0, "compacted") == (44, -1)
    assert delete(broker, 0, "__consumer_offsets") == (17, -1)


def test_a_topic_that_keeps_everything_may_be_cut(broker: HandlerBroker) -> None:
    broker.create("t", configs={"cleanup.policy": ""})
    assert delete(broker, 0) == (0, 0)


def test_the_new_start_survives_a_crash(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        broker.create("t")
        broker.produce("t", 0, [(1, b"a"), (2, b"b")])
        assert delete(broker, 1) == (0, 1)
        tree = broker.tree
        assert "t 0 1" in Path(broker.paths[0], "log-start-offset-checkpoint").read_text()
    with HandlerBroker(tmp_path, tree=tree) as again:
        assert again.ctx.replicas.get("t", 0).log.start_offset == 1
