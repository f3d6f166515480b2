"""acks=all with more than one replica: what the cluster will feed from its followers."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.metadata.image import PartitionImage
from tests.unit.replication.test_produce import on_producer

TWO = PartitionImage(0, 1, 0, 1, (1, 2), (1, 2))


def in_sync_pair(broker, producer):
    """Partition 0 has a second in-sync replica, which has nothing yet; one request waits for it."""
    partition = broker.replicas.get("t", 0)
    partition.apply(TWO, 1)
    producer.send(0, 1)
    producer.turn.end()
    assert producer.answers == []
    assert producer.purgatory.operations.delayed == 1
    return partition


def test_the_answer_comes_when_the_high_watermark_passes():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        partition.log.set_high_watermark(1)
        assert producer.purgatory.check("t", 0) == 0
        partition.log.set_high_watermark(2)
        assert producer.purgatory.check("t", 1) == 1  # any key completes what is settled
        assert producer.purgatory.check("t", 0) == 0
        assert producer.seen() == [[(0, ErrorCode.NONE, 0, 1), (1, ErrorCode.NONE, 0, 1)]]
        producer.clockwork.advance(1000)
        assert len(producer.answers) == 1

    on_producer(story)


def test_when_the_time_is_over_only_unsettled_partitions_get_7_and_the_records_stay():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        producer.clockwork.advance(99)
        assert producer.answers == []
        producer.clockwork.advance(101)
        assert producer.seen() == [[(0, ErrorCode.REQUEST_TIMED_OUT, -1, -1), (1, ErrorCode.NONE, 0, 1)]]
        assert partition.log.end_offset == 2
        assert producer.purgatory.operations.delayed == 0

    on_producer(story)


def test_lost_leadership_is_6():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        partition.apply(PartitionImage(0, 2, 1, 2, (2,), (1, 2)), 1)
        assert producer.purgatory.check("t", 0) == 1
        assert producer.seen() == [[(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1), (1, ErrorCode.NONE, 0, 1)]]

    on_producer(story)


def test_too_few_in_sync_replicas_after_the_append_is_20():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        partition.log.set_high_watermark(2)
        partition.log.config.min_insync_replicas = 2
        partition.apply(PartitionImage(0, 1, 0, 2, (1,), (1, 2)), 1)
        assert producer.purgatory.check("t", 0) == 1
        assert producer.seen()[0][0] == (0, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1, -1)

    on_producer(story)


def test_an_isr_that_shrinks_to_the_leader_commits_what_waits():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        partition.apply(PartitionImage(0, 1, 0, 2, (1,), (1, 2)), 1)
        assert producer.purgatory.check("t", 0) == 1
        assert producer.seen()[0][0] == (0, ErrorCode.NONE, 0, 1)

    on_producer(story)
