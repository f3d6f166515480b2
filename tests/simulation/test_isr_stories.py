"""Who is in sync and what is committed, when answers are lost, sets shrink and leaders change."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from replication.metadata import paths
from tests.simulation.story import LAG_S, Story
from tests.simulation.test_move_stories import apart, others

pytestmark = pytest.mark.xdist_group("simulation: stories")

SHRUNK_S = 1.5 * LAG_S + 1
"""After so long at most the leader has dropped who does not fetch."""


def idempotent(story, leader, value, sequence):
    """The answer to one record of producer 1000, epoch 0, with acks=all."""
    kind = m.ProduceRequest
    story.history.sending(("t", 0), "idempotent", [(sequence, value)], ordered=True, repeatable=False)
    records = bytes(
        build_batch(
            [Record(0, 1_700_000_000_000, None, value)],
            producer_id=1000,
            producer_epoch=0,
            base_sequence=sequence,
        )
    )
    data = [kind.PartitionProduceData(index=0, records=records)]
    topics = [kind.TopicProduceData(name="t", topic_id=story.topic_ids["t"], partition_data=data)]
    answer = story.ask(leader, kind(acks=-1, timeout_ms=4_000, topic_data=topics))
    return answer.responses[0].partition_responses[0]


def test_what_waits_when_the_isr_shrinks_below_the_minimum_times_out_and_a_retry_adds_nothing():
    """It may be committed later; the producer that sends it again hears of the offset it has."""
    with Story() as story:
        leader, follower = others(story)
        story.create("t", (leader, follower))
        assert idempotent(story, leader, b"a", 0).base_offset == 0
        with apart(story, leader, follower):
            assert idempotent(story, leader, b"b", 1).error_code == ErrorCode.REQUEST_TIMED_OUT
            assert story.isr("t") == (leader,)
            assert idempotent(story, leader, b"b", 1).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert story.values(leader, "t") == [b"a"]
        story.until(lambda: story.isr("t") == tuple(sorted((leader, follower))), "the follower to be back")
        again = idempotent(story, leader, b"b", 1)
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 1)
        assert idempotent(story, leader, b"c", 2).base_offset == 2
        story.settle()
        assert story.values(leader, "t") == [b"a", b"b", b"c"]


def test_a_shrink_whose_answer_is_lost_is_asked_for_again_and_found_done():
    with Story() as story:
        controller = story.controller()
        leader, follower = others(story)
        story.create("t", (leader, controller, follower))
        epoch = story.state("t").leader_epoch
        written = []

        def heard(operation):
            if operation.path == paths.partition_state("t", 0):
                if not written:
                    story.cut_one_way(controller, leader)  # the answer does not arrive
                written.append(story.isr("t"))

        story.cut(follower, leader)
        assert story.produce(leader, "t", b"a", acks=1) == ErrorCode.NONE
        story.on_write(heard)
        story.until(lambda: written, "the ISR to shrink", SHRUNK_S)
        story.pass_time(2)
        assert sorted(story.replica(leader, "t").isr) == [1, 2, 3]  # the leader knows nothing of it
        assert story.replica(leader, "t").log.high_watermark == 0
        story.wire.heal(f"b{controller}", f"b{leader}")
        story.until(
            lambda: sorted(story.replica(leader, "t").isr) == sorted((leader, controller)),
            "the leader to hear of it",
            within_s=5,
        )
        assert written == [tuple(sorted((leader, controller)))]
        assert story.state("t").leader_epoch == epoch
        story.until(lambda: story.values(leader, "t") == [b"a"], "the record to be committed", within_s=2)
        story.settle()


def delete_until(story, leader, offset):
    """Delete the records of `t` before an offset; the partition's part of the answer."""
    kind = m.DeleteRecordsRequest
    partitions = [kind.DeleteRecordsPartition(partition_index=0, offset=offset)]
    topics = [kind.DeleteRecordsTopic(name="t", partitions=partitions)]
    return story.ask(leader, kind(topics=topics, timeout_ms=2_000)).topics[0].partitions[0]


def test_deleted_records_are_gone_from_all_live_replicas_when_the_answer_comes():
    """One that lives and does not fetch makes it time out; one that is dead is not waited for."""
    with Story(replica_lag_time_max_ms="60000") as story:
        leader, follower = others(story)
        third = story.controller()
        story.create("t", (leader, follower, third))
        for value in (b"a", b"b", b"c", b"d"):
            assert story.produce(leader, "t", value) == ErrorCode.NONE
        done = delete_until(story, leader, 1)
        assert (done.error_code, done.low_watermark) == (ErrorCode.NONE, 1)
        assert [story.replica(number, "t").log.start_offset for number in (1, 2, 3)] == [1, 1, 1]
        with apart(story, follower, leader):
            late = delete_until(story, leader, 2)
            assert (late.error_code, late.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 1)
            assert story.replica(third, "t").log.start_offset == 2
        story.until(lambda: story.replica(follower, "t").log.start_offset == 2, "it to follow", within_s=5)
        story.kill(follower)
        story.until(lambda: follower not in story.image(leader).brokers, "it to be known as dead")
        done = delete_until(story, leader, 3)
        assert (done.error_code, done.low_watermark) == (ErrorCode.NONE, 3)
        story.start(follower)
        story.until(lambda: story.isr("t") == (1, 2, 3), "it to be back")
        story.until(lambda: story.replica(follower, "t").log.start_offset == 3, "it to follow", within_s=5)
        refused = delete_until(story, leader, 5)
        assert refused.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
