"""DeleteRecords on partitions."""

from __future__ import annotations

import errno

import pytest

from protocol.errors import ErrorCode
from replication.delete_records import delete_records
from replication.metadata.image import PartitionImage
from runtime.pieces import at_once
from tests.unit.replication.cluster import Broker, on_broker, produce


def delete(broker, *wanted):
    results = at_once(delete_records(wanted, broker.replicas.find, broker.logs.persist_log_starts))
    return [(result.error, result.low_watermark) for result in results]


@pytest.mark.parametrize(
    ("offset", "result"),
    [
        (3, (ErrorCode.NONE, 3)),
        (-1, (ErrorCode.NONE, 5)),
        (5, (ErrorCode.NONE, 5)),
        (0, (ErrorCode.NONE, 0)),
        (6, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
        (-2, (ErrorCode.OFFSET_OUT_OF_RANGE, -1)),
    ],
)
def test_offsets(offset, result):
    async def story(broker):
        await broker.create("t")
        produce(broker.replicas.get("t", 0), 5)
        assert delete(broker, ("t", 0, offset)) == [result]

    on_broker(story)


def test_many_are_moved_some_at_a_time(monkeypatch):
    monkeypatch.setattr("replication.delete_records.MOVED_AT_ONCE", 2)

    async def story(broker):
        await broker.create("t", partitions=5)
        partitions = [broker.replicas.get("t", index) for index in range(5)]
        for partition in partitions:
            produce(partition, 1)
        steps = delete_records(
            [("t", index, -1) for index in range(5)], broker.replicas.find, broker.logs.persist_log_starts
        )
        moved = [sum(partition.log.start_offset for partition in partitions) for _ in steps]
        assert moved == [2, 4, 5]

    on_broker(story)


def test_the_start_never_goes_back():
    async def story(broker):
        await broker.create("t")
        produce(broker.replicas.get("t", 0), 5)
        assert delete(broker, ("t", 0, 4)) == delete(broker, ("t", 0, 2)) == [(ErrorCode.NONE, 4)]

    on_broker(story)


def test_partitions_that_refuse():
    async def story(broker):
        await broker.create("compacted", good_cleanup_policy="compact")
        await broker.create("t", 3)
        produce(broker.replicas.get("compacted", 0), 5)
        broker.replicas.get("t", 1).apply(PartitionImage(1, 2, 1, 1, (2,), (1, 2)), 1)
        assert delete(
            broker,
            ("compacted", 0, 1),
            ("t", 0, 0),
            ("t", 1, 0),
            ("t", 9, 0),
            ("u", 0, 0),
            ("__consumer_offsets", 0, 0),
        ) == [
            (ErrorCode.POLICY_VIOLATION, -1),
            (ErrorCode.NONE, 0),
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            (ErrorCode.INVALID_TOPIC_EXCEPTION, -1),
        ]

    on_broker(story)


def test_the_new_start_survives_a_crash():
    import asyncio

    async def main():
        first = Broker()
        await first.start()
        await first.create("t")
        produce(first.replicas.get("t", 0), 5)
        first.replicas.get("t", 0).log.flush()
        assert delete(first, ("t", 0, 3)) == [(ErrorCode.NONE, 3)]
        files = first.files.crash()
        await first.store.close()
        second = Broker(files, first.tree)
        await second.start(unclean=True)
        assert second.replicas.get("t", 0).log.start_offset == 3

    asyncio.run(main())


def test_a_start_that_is_not_on_disk_is_not_acknowledged():
    async def story(broker):
        await broker.create("t")
        produce(broker.replicas.get("t", 0), 5)
        broker.files.fail_next("append", errno.ENOSPC, "log-start-offset-checkpoint")
        assert delete(broker, ("t", 0, 3), ("u", 0, 0)) == [
            (ErrorCode.KAFKA_STORAGE_ERROR, -1),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ]
        assert delete(broker, ("t", 0, 3)) == [(ErrorCode.NONE, 3)]  # there is room again

    on_broker(story)
