"""Reading for Fetch: budget, offsets, epochs, divergence, and when it waits."""

from __future__ import annotations

import itertools

import pytest

from protocol.errors import ErrorCode
from replication.fetch import FetchParams, Wanted, read_all, validate
from replication.metadata.image import PartitionImage
from tests.unit.replication.cluster import on_broker, produce, wanted

ONE = (
    61 + 27
)  # bytes of a batch of one record of 20 bytes: header, and length, attributes, deltas, key, value


def params(version=11, *, wait=0, least=1, most=1 << 20, **fields):
    return FetchParams(version, wait, least, most, **fields)


def on_topic(story, partitions=3):
    async def main(broker):
        await broker.create("t", partitions)
        story(broker)

    on_broker(main)


def fetch(broker, *entries, **fields):
    return read_all(entries, broker.replicas.wanted_partition, params(**fields))


def fill(broker, index, count, size=20):
    partition = broker.replicas.get("t", index)
    for _ in range(count):
        produce(partition, size=size)
    return partition


def one_size(broker):
    return fetch(broker, wanted("t", 0)).rows[0].length


def test_rows_come_in_the_order_of_the_request_with_all_offsets():
    def story(broker):
        fill(broker, 0, 2)
        fill(broker, 2, 1)
        answer = fetch(broker, wanted("t", 2), wanted("t", 1), wanted("t", 0))
        assert [row.index for row in answer.rows] == [2, 1, 0]
        assert [(r.high_watermark, r.last_stable_offset, r.log_start_offset) for r in answer.rows] == [
            (1, 1, 0),
            (0, 0, 0),
            (2, 2, 0),
        ]
        assert [row.error for row in answer.rows] == [ErrorCode.NONE] * 3
        assert answer.size_bytes == sum(row.length for row in answer.rows)
        assert answer.rows[1].length == 0
        assert answer.ready

    on_topic(story)


def test_the_first_partition_with_records_gives_a_batch_whatever_the_limits():
    def story(broker):
        for index in (1, 2):
            fill(broker, index, 3)
        answer = fetch(broker, wanted("t", 0), wanted("t", 1, max_bytes=1), wanted("t", 2), most=1)
        lengths = [row.length for row in answer.rows]
        assert lengths[0] == lengths[2] == 0
        assert lengths[1] > 0
        assert answer.rows[2].high_watermark == 3
        assert fetch(broker, wanted("t", 1, max_bytes=0), most=0).rows[0].length == lengths[1]

    on_topic(story)


def test_later_partitions_get_whole_batches_that_fit():
    def story(broker):
        for index in range(3):
            fill(broker, index, 3)
        one = one_size(broker) // 3
        answer = fetch(broker, *(wanted("t", i) for i in range(3)), most=5 * one + 3)
        assert [row.length for row in answer.rows] == [3 * one, 2 * one, 0]
        answer = fetch(broker, *(wanted("t", i, max_bytes=one + 5) for i in range(3)))
        assert [row.length for row in answer.rows] == [one] * 3
        answer = fetch(broker, *(wanted("t", i, max_bytes=one - 1) for i in range(3)))
        assert [row.length for row in answer.rows] == [one, 0, 0]

    on_topic(story)


def test_versions_up_to_2_limit_each_partition_alone():
    def story(broker):
        for index in range(3):
            fill(broker, index, 3)
        one = one_size(broker) // 3
        answer = fetch(broker, *(wanted("t", i, max_bytes=2 * one) for i in range(3)), version=2, most=1)
        assert [row.length for row in answer.rows] == [2 * one] * 3

    on_topic(story)


def test_a_read_starts_with_the_batch_that_holds_the_offset():
    def story(broker):
        partition = broker.replicas.get("t", 0)
        produce(partition, 5)
        produce(partition, 5)
        row = fetch(broker, wanted("t", 0, 7)).rows[0]
        assert row.data[0][:8] if isinstance(row.data, list) else row.data[:8]
        first = b"".join(row.data) if isinstance(row.data, list) else row.data
        assert int.from_bytes(first[:8], "big") == 5

    on_topic(story)


@pytest.mark.parametrize(
    ("offset", "error"), [(-1, 1), (0, 1), (1, 1), (2, 0), (4, 0), (5, 0), (6, 1), (1 << 62, 1)]
)
def test_offsets_outside_the_log(offset, error):
    def story(broker):
        fill(broker, 0, 5).delete_records(2)
        row = fetch(broker, wanted("t", 0, offset)).rows[0]
        assert row.error == error
        if error:
            assert (row.high_watermark, row.last_stable_offset, row.log_start_offset) == (-1, -1, -1)
            assert row.length == 0

    on_topic(story)


def test_an_out_of_range_offset_is_told_even_when_the_budget_is_used_up():
    def story(broker):
        fill(broker, 0, 1)
        fill(broker, 1, 5).delete_records(3)
        answer = fetch(broker, wanted("t", 0), wanted("t", 1, 0), most=1)
        assert [row.error for row in answer.rows] == [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE]

    on_topic(story)


def test_between_high_watermark_and_end_there_is_nothing_for_consumers():
    def story(broker):
        partition = fill(broker, 0, 2)
        partition.apply(PartitionImage(0, 1, 0, 1, (1, 2), (1, 2)), 1)
        fill(broker, 0, 3)
        for offset, length in ((1, True), (2, False), (4, False), (5, False)):
            row = fetch(broker, wanted("t", 0, offset)).rows[0]
            assert (row.error, bool(row.length), row.high_watermark) == (ErrorCode.NONE, length, 2)
        assert fetch(broker, wanted("t", 0, 6)).rows[0].error == ErrorCode.OFFSET_OUT_OF_RANGE
        follower = fetch(broker, wanted("t", 0, 4), replica_id=2).rows[0]
        assert follower.length > 0

    on_topic(story)


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (3, 0), (2, ErrorCode.FENCED_LEADER_EPOCH), (4, 75)])
def test_the_leader_epoch_of_the_client_is_checked(epoch, error):
    def story(broker):
        broker.replicas.get("t", 0).apply(PartitionImage(0, 1, 3, 1, (1,), (1,)), 1)
        assert fetch(broker, wanted("t", 0, leader_epoch=epoch)).rows[0].error == error

    on_topic(story)


@pytest.mark.parametrize(("version", "replica_id", "error"), [(10, -1, 6), (11, -1, 0), (16, 2, 6)])
def test_consumers_may_read_from_followers_from_version_11(version, replica_id, error):
    def story(broker):
        broker.replicas.get("t", 0).apply(PartitionImage(0, 2, 1, 1, (1, 2), (1, 2)), 1)
        answer = fetch(broker, wanted("t", 0), version=version, replica_id=replica_id)
        assert answer.rows[0].error == error

    on_topic(story)


@pytest.mark.parametrize("replica_id", [1, 3, 2**31 - 1])
def test_who_claims_to_be_a_replica_and_is_none_reads_nothing(replica_id):
    def story(broker):
        fill(broker, 0, 2)
        broker.replicas.get("t", 0).apply(PartitionImage(0, 1, 0, 1, (1, 2), (1, 2)), 1)
        for epoch, error in ((-1, 6), (0, 75)):
            row = fetch(broker, wanted("t", 0, leader_epoch=epoch), replica_id=replica_id).rows[0]
            assert (row.error, row.length) == (error, 0)

    on_topic(story)


def test_errors_of_partitions_that_are_not_here():
    def story(broker):
        answer = fetch(broker, wanted("u", 0), wanted("t", 9), Wanted("", bytes([9]) * 16, 0, 0, 1), wait=500)
        assert [row.error for row in answer.rows] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ]
        assert answer.ready

    on_topic(story)


def test_aborted_transactions_are_a_list_for_read_committed_only():
    def story(broker):
        fill(broker, 0, 1)
        assert fetch(broker, wanted("t", 0)).rows[0].aborted is None
        assert fetch(broker, wanted("t", 0), isolation=1).rows[0].aborted == []
        assert fetch(broker, wanted("t", 1), isolation=1).rows[0].aborted == []
        assert fetch(broker, wanted("u", 1), isolation=1).rows[0].aborted is None

    on_topic(story)


# Kafka's table for divergence: epochs 0@0, 3@2, 4@8, 7@13, 9@14, end 17, leader epoch 10 without records.
DIVERGENCE = [
    ((2, 5), (0, 2)),
    ((0, 4), (0, 2)),
    ((6, 6), (4, 13)),
    ((5, 9), (4, 13)),
    ((10, 18), (10, 17)),
    ((0, 2), None),
    ((7, 14), None),
    ((9, 17), None),
    ((10, 17), None),
    ((11, 5), ErrorCode.OFFSET_OUT_OF_RANGE),
]


def diverging_log(broker):
    partition = broker.replicas.get("t", 0)
    starts = [(0, 0), (3, 2), (4, 8), (7, 13), (9, 14), (10, 17)]
    for (epoch, start), (_, end) in itertools.pairwise(starts):
        partition.apply(PartitionImage(0, 1, epoch, epoch, (1,), (1,)), 1)
        for _ in range(start, end):
            produce(partition)
    partition.apply(PartitionImage(0, 1, 10, 10, (1,), (1,)), 1)
    return partition


@pytest.mark.parametrize(("asked", "expected"), DIVERGENCE)
def test_divergence(asked, expected):
    def story(broker):
        diverging_log(broker)
        epoch, offset = asked
        answer = fetch(broker, wanted("t", 0, offset, last_fetched_epoch=epoch), version=12, wait=500)
        row = answer.rows[0]
        if isinstance(expected, ErrorCode):
            assert row.error == expected
        else:
            assert (row.error, row.diverging) == (ErrorCode.NONE, expected)
        if expected is not None:
            assert row.length == 0
            assert answer.ready

    on_topic(story)


def test_divergence_below_the_log_start():
    def story(broker):
        diverging_log(broker).delete_records(5)
        rows = fetch(
            broker,
            wanted("t", 0, 8, last_fetched_epoch=2),
            wanted("t", 0, 5, last_fetched_epoch=0),
            wanted("t", 0, 0, last_fetched_epoch=0),
            version=12,
        ).rows
        assert rows[0].diverging is not None
        assert rows[0].diverging[1] == 5
        assert (rows[1].error, rows[1].diverging) == (ErrorCode.NONE, None)
        assert rows[2].error == ErrorCode.OFFSET_OUT_OF_RANGE

    on_topic(story)


def test_when_a_fetch_waits():
    def story(broker):
        one = 0
        fill(broker, 0, 1)
        one = one_size(broker)
        at_end, at_start = wanted("t", 0, 1), wanted("t", 0, 0)
        assert not fetch(broker, at_end, wait=500).ready
        assert fetch(broker, at_end, wait=0).ready
        assert fetch(broker, at_end, wait=-1).ready
        assert fetch(broker, at_end, wait=500, least=0).ready
        assert fetch(broker, wait=500).ready
        assert fetch(broker, at_start, wait=500, least=one).ready
        assert not fetch(broker, at_start, wait=500, least=one + 1).ready
        assert fetch(broker, at_start, wait=500, least=one + 1, most=one).ready  # never more than fits

    on_topic(story)


def test_unknown_partitions_do_not_end_the_wait_of_others_but_other_errors_do():
    def story(broker):
        assert not fetch(broker, wanted("t", 0), wanted("u"), wait=500).ready
        assert not fetch(broker, wanted("t", 0), Wanted("", bytes([9]) * 16, 0, 0, 1), wait=500).ready
        assert fetch(broker, wanted("u"), wanted("t", 9), wait=500).ready
        assert fetch(broker, wanted("t", 0), wanted("t", 1, 7), wait=500).ready
        broker.replicas.get("t", 1).apply(PartitionImage(1, 2, 1, 1, (1, 2), (1, 2)), 1)
        assert fetch(broker, wanted("t", 0), wanted("t", 1), wait=500, version=10).ready

    on_topic(story)


def test_available_bytes_count_even_where_whole_batches_leave_a_gap():
    def story(broker):
        fill(broker, 0, 3)
        one = one_size(broker) // 3
        limit = 2 * one + 10
        answer = fetch(broker, wanted("t", 0, max_bytes=limit), wait=500, least=limit)
        assert answer.rows[0].length == 2 * one
        assert answer.ready
        assert not fetch(broker, wanted("t", 0, max_bytes=limit), wait=500, least=limit + 1).ready

    on_topic(story)


def test_what_lies_in_an_older_segment_does_not_wait():
    async def main(broker):
        await broker.create("t", 1, good_segment_bytes=200)
        partition = broker.replicas.get("t", 0)
        produce(partition, size=100)
        produce(partition, size=100)
        assert fetch(broker, wanted("t", 0), wait=500, least=1 << 20).ready
        assert not fetch(broker, wanted("t", 0, 1), wait=500, least=1 << 20).ready

    on_broker(main)


def test_a_failed_disk():
    def story(broker):
        partition = fill(broker, 0, 1)
        partition.log.directory.fail(OSError(5, "gone"))
        assert fetch(broker, wanted("t", 0)).rows[0].error == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch(broker, wanted("t", 0), version=5).rows[0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER

    on_topic(story)


@pytest.mark.parametrize(
    ("isolation", "max_bytes", "error"), [(0, 0, 0), (1, 5, 0), (2, 1, -1), (-1, 1, -1), (0, -1, -1)]
)
def test_requests_that_are_refused_as_a_whole(isolation, max_bytes, error):
    assert validate(params(isolation=isolation), [wanted("t", max_bytes=max_bytes)]) == error


def test_keys_are_names_or_ids():
    assert wanted("t", 3).key == ("t", 3)
    assert Wanted("", bytes([7]) * 16, 3, 0, 0).key == (bytes([7]) * 16, 3)
    assert params(12).uses_ids is False
    assert params(13).uses_ids is True
