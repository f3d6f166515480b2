"""acks=all with more than one replica: what followers feed."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.leadership import IsrVerdict
from replication.roles import become_follower, become_leader
from tests.unit.replication.leading import LAG_MS, Cluster, state
from tests.unit.replication.test_produce import on_producer

CLUSTER = Cluster()


def lead(partition, isr, version, **fields):
    """Broker 1 leads, under a newer epoch."""
    new = state(isr=isr, replicas=(1, 2), epoch=version, version=version, **fields)
    become_leader(partition, new, CLUSTER.context)


def in_sync_pair(broker, producer):
    """Partition 0 has a second in-sync replica, which has nothing yet; one request waits for it."""
    partition = broker.replicas.get("t", 0)
    lead(partition, (1, 2), 1)
    producer.send(0, 1)
    producer.turn.end()
    assert producer.answers == []
    assert producer.purgatory.delayed == 1
    return partition


def fetched(partition, offset):
    if partition.leadership.fetched(2, offset, 0, partition.log.end_offset):
        partition.committed_more()


def test_the_answer_comes_when_the_high_watermark_passes():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        fetched(partition, 1)
        assert producer.answers == []
        fetched(partition, 2)
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
        assert producer.purgatory.delayed == 0
        assert not partition.commits

    on_producer(story)


def test_lost_leadership_is_6():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        become_follower(partition, state(leader=2, epoch=2, version=2, isr=(2,), replicas=(1, 2)))
        assert producer.seen() == [[(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1), (1, ErrorCode.NONE, 0, 1)]]

    on_producer(story)


def test_a_partition_that_goes_is_6():
    def story(broker, producer):
        in_sync_pair(broker, producer).retire()
        assert producer.seen()[0][0] == (0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)

    on_producer(story)


def test_too_few_in_sync_replicas_after_the_append_is_20():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        partition.log.config.min_insync_replicas = 2
        partition.log.set_high_watermark(2)
        lead(partition, (1,), 2)
        assert producer.seen()[0][0] == (0, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1, -1)

    on_producer(story)


def test_under_the_minimum_isr_it_waits_for_its_time():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        partition.log.config.min_insync_replicas = 2
        lead(partition, (1,), 2)
        assert producer.answers == []
        producer.clockwork.advance(200)
        assert producer.seen()[0][0] == (0, ErrorCode.REQUEST_TIMED_OUT, -1, -1)

    on_producer(story)


def test_an_isr_that_shrinks_to_the_leader_commits_what_waits():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        CLUSTER.now_ms += 2 * LAG_MS
        assert partition.leadership.shrink()
        partition.leadership.decided(CLUSTER.proposals[-1], IsrVerdict(ErrorCode.NONE, 1, 2, (1,)))
        assert producer.seen()[0][0] == (0, ErrorCode.NONE, 0, 1)

    on_producer(story)


def test_a_leader_that_goes_on_under_a_newer_epoch_keeps_the_waiting():
    def story(broker, producer):
        partition = in_sync_pair(broker, producer)
        lead(partition, (1, 2), 2)
        assert producer.answers == []
        fetched(partition, 2)
        assert producer.seen()[0][0] == (0, ErrorCode.NONE, 0, 1)

    on_producer(story)
