"""ListOffsets of every version for one partition."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.list_offsets import DEBUGGING_REPLICA, OffsetQuery, Search, find_offset
from replication.metadata.image import PartitionImage
from tests.unit.replication.cluster import on_broker, produce

NOTHING = (ErrorCode.NONE, -1, -1)


def on_partition(story, **configs):
    async def main(broker):
        await broker.create("t", 1, **configs)
        story(broker.replicas.get("t", 0))

    on_broker(main)


def found(partition, query, version=10, **fields):
    """The answer, which only a time or the greatest timestamp needs a search for."""
    answer = find_offset(partition, query, version=version, now_ms=2_000_000_000_000, **fields)
    if isinstance(answer, Search):
        assert query.timestamp >= 0 or query.timestamp == -3
        answer = answer.run()
    return answer


def ask(partition, timestamp, version=10, epoch=-1, **fields):
    answer = found(partition, OffsetQuery(timestamp, epoch), version, **fields)
    return answer.error, answer.offset, answer.timestamp


def test_latest_is_the_high_watermark_for_consumers_and_the_end_for_replicas():
    def story(partition):
        produce(partition, 3)
        partition.apply(PartitionImage(0, 1, 2, 1, (1, 2), (1, 2)), 1)
        produce(partition, 2)
        assert ask(partition, -1) == (ErrorCode.NONE, 3, -1)
        assert ask(partition, -1, isolation=1) == (ErrorCode.NONE, 3, -1)
        assert ask(partition, -1, replica_id=2) == (ErrorCode.NONE, 5, -1)
        assert ask(partition, -1, replica_id=DEBUGGING_REPLICA) == (ErrorCode.NONE, 5, -1)
        assert found(partition, OffsetQuery(-1)).leader_epoch == 2

    on_partition(story)


def test_who_reads_committed_records_finds_nothing_from_an_open_transaction_on():
    def story(partition):
        produce(partition, 1)
        produce(partition, 1, producer=1, epoch=0, sequence=0, transactional=True)
        produce(partition, 1)
        latest, largest = found(partition, OffsetQuery(-1)), found(partition, OffsetQuery(-3))
        assert latest.offset == 3
        assert ask(partition, -1, isolation=1) == (ErrorCode.NONE, 1, -1)
        assert ask(partition, largest.timestamp + 1, isolation=1) == NOTHING
        assert ask(partition, -3)[1] == largest.offset
        assert ask(partition, -1, isolation=1, replica_id=2)[1] == 3

    on_partition(story)


def test_earliest_is_the_start_of_the_log_with_its_epoch():
    def story(partition):
        produce(partition, 3)
        partition.apply(PartitionImage(0, 1, 2, 1, (1,), (1,)), 1)
        produce(partition, 2)
        assert ask(partition, -2) == (ErrorCode.NONE, 0, -1)
        partition.delete_records(4)
        assert ask(partition, -2) == ask(partition, -4) == (ErrorCode.NONE, 4, -1)
        assert found(partition, OffsetQuery(-2)).leader_epoch == 2
        partition.delete_records(5)
        assert ask(partition, -2) == (ErrorCode.NONE, 5, -1)

    on_partition(story)


@pytest.mark.parametrize(
    ("asked", "offset", "timestamp"),
    [(0, 0, 2), (2, 0, 2), (3, 1, 4), (4, 1, 4), (7, 3, 8), (8, 3, 8), (9, -1, -1)],
)
@pytest.mark.parametrize("codec", [0, 1, 4])
def test_the_first_record_at_or_after_a_time(asked, offset, timestamp, codec):
    def story(partition):
        produce(partition, 4, ts=[2, 4, 6, 8], codec=codec)
        assert ask(partition, asked) == (ErrorCode.NONE, offset, timestamp)

    on_partition(story)


def test_a_hit_beyond_the_limit_is_no_hit():
    def story(partition):
        produce(partition, 2, ts=[10, 20])
        partition.apply(PartitionImage(0, 1, 0, 1, (1, 2), (1, 2)), 1)
        produce(partition, 2, ts=[30, 40])
        assert ask(partition, 20) == (ErrorCode.NONE, 1, 20)
        assert ask(partition, 25) == NOTHING
        assert ask(partition, 25, replica_id=2) == (ErrorCode.NONE, 2, 30)

    on_partition(story)


def test_the_greatest_timestamp():
    def story(partition):
        assert ask(partition, -3) == NOTHING
        produce(partition, 3, ts=[5, 50, 7])
        produce(partition, 2, ts=[9, 8])
        assert ask(partition, -3) == (ErrorCode.NONE, 1, 50)

    on_partition(story)


def test_there_is_no_tiered_storage():
    def story(partition):
        produce(partition, 3)
        assert ask(partition, -5) == ask(partition, -6, version=11) == NOTHING

    on_partition(story)


@pytest.mark.parametrize(
    ("timestamp", "first_version"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11)]
)
def test_special_timestamps_have_their_versions(timestamp, first_version):
    def story(partition):
        assert ask(partition, timestamp, version=first_version)[0] == ErrorCode.NONE
        if first_version > 1:
            assert ask(partition, timestamp, version=first_version - 1)[0] == ErrorCode.UNSUPPORTED_VERSION

    on_partition(story)


@pytest.mark.parametrize("timestamp", [-7, -100, -(1 << 63)])
def test_other_negative_timestamps_are_unsupported(timestamp):
    def story(partition):
        for version in (0, 1, 11):
            assert ask(partition, timestamp, version=version)[0] == ErrorCode.UNSUPPORTED_VERSION

    on_partition(story)


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (4, 0), (3, 74), (5, 75)])
def test_epochs_are_checked(epoch, error):
    def story(partition):
        partition.apply(PartitionImage(0, 1, 4, 1, (1,), (1,)), 1)
        assert ask(partition, -1, epoch=epoch)[0] == error

    on_partition(story)


def test_only_the_leader_answers_but_for_the_debugging_consumer():
    def story(partition):
        partition.apply(PartitionImage(0, 2, 4, 1, (2, 1), (1, 2)), 1)
        assert ask(partition, -1)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert ask(partition, -1, replica_id=DEBUGGING_REPLICA)[0] == ErrorCode.NONE

    on_partition(story)


def test_version_0_lists_segment_starts_newest_first():
    def story(partition):
        for _ in range(3):
            produce(partition, 2, size=60)

        def old(timestamp, count):
            return found(partition, OffsetQuery(timestamp, max_offsets=count), 0).old_style

        assert old(-1, 10) == [6, 4, 2, 0]
        assert old(-1, 2) == [6, 4]
        assert old(-1, 0) == []
        assert old(-2, 5) == [0]
        assert old(3_000_000_000_000, 10) == [6, 4, 2, 0]
        assert found(partition, OffsetQuery(-1, max_offsets=-1), 0).error == ErrorCode.UNKNOWN_SERVER_ERROR
        partition.delete_records(3)
        assert old(-2, 5) == [3]
        partition.apply(PartitionImage(0, 1, 0, 1, (1, 2), (1, 2)), 1)
        produce(partition, 2, size=60)
        produce(partition, 2, size=60)
        assert old(-1, 10) == [6, 6, 4, 3, 3]  # what is not committed is cut to the high watermark

    on_partition(story, good_segment_bytes=250)


def test_a_failed_disk():
    def story(partition):
        partition.log.directory.fail(OSError(5, "gone"))
        assert ask(partition, -1)[0] == ErrorCode.KAFKA_STORAGE_ERROR

    on_partition(story)


def test_a_log_that_is_closed_during_a_search():
    def story(partition):
        produce(partition, 3)
        search = find_offset(partition, OffsetQuery(0), version=10, now_ms=0)
        partition.log.close()
        assert search.run().error == ErrorCode.KAFKA_STORAGE_ERROR

    on_partition(story)
