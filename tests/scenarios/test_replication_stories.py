"""The histories in which replicas once lost records or went apart (KIP-101, KIP-279), step by step."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.fetch import FetchParams, read_all
from replication.list_offsets import LATEST, OffsetQuery, find_offset
from tests.unit.replication.cluster import wanted
from tests.unit.replication.cluster.stage import Stage


def asked(request):
    """(fetch offset, last fetched epoch) of the only partition that a request names."""
    [topic] = request.topics
    [partition] = topic.partitions
    return partition.fetch_offset, partition.last_fetched_epoch


def same(stage, *nodes):
    logs = [stage[each].batches() for each in nodes or stage.live]
    return all(log == logs[0] for log in logs)


A, B = 1, 2


def two_messages_on_both():
    """B leads e0; both have two messages, B has committed two, A knows of one."""
    stage = Stage(2)
    stage.lead(B, is_new=True)
    stage[B].produce()
    stage[A].fetch(2)  # the first message, then its acknowledgement
    stage[B].produce()
    stage[A].fetch(2)  # the second message; the answer to its acknowledgement has the old mark
    assert (stage[A].ends, stage[B].ends) == ((2, 1), (2, 2))
    return stage


def test_t1_a_restart_does_not_cut_what_was_committed():
    stage = two_messages_on_both()
    stage.bounce(A)
    stage.stop(B)
    stage.lead(A, isr=[A])
    assert stage[A].ends == (2, 2)
    assert stage[A].epochs == [(0, 0), (1, 2)]


def test_t1_nor_does_it_with_the_leader_alive():
    stage = two_messages_on_both()
    stage.bounce(A)
    stage.lead(B)
    [request] = stage[A].fetch()
    assert asked(request) == (2, 0)
    assert stage[A].ends == (2, 2)


def test_t2_a_leader_with_less_makes_the_other_cut_its_own():
    stage = two_messages_on_both()
    node_a, node_b = stage[A], stage[B]
    node_b.log.truncate_to(1, 0)  # a power cut takes what was not synced
    stage.stop(A)
    stage.stop(B)
    stage.start(B, node_b)
    stage.lead(B, isr=[B])
    assert stage[B].produce(size=33) == 1
    stage.start(A, node_a)
    stage.lead(B, isr=[B])
    [first, second] = stage[A].fetch(2)
    assert asked(first) == (2, 0)
    assert asked(second) == (1, 0)
    stage[A].fetch(2)
    assert stage[A].ends == (2, 2)
    assert same(stage)
    assert stage[A].epochs == [(0, 0), (1, 1)]


def eight_in_sync():
    """A leads e0 with ten records, of which B has eight; then B leads e1."""
    stage = Stage(2)
    stage.lead(A, is_new=True)
    for _ in range(8):
        stage[A].produce()
    stage[B].fetch(3)
    stage[A].produce()
    stage[A].produce()
    stage.lead(B, isr=[B])
    return stage


def test_t3_an_epoch_without_a_record():
    stage = eight_in_sync()
    assert stage[B].epochs == [(0, 0), (1, 8)]
    stage.lead(A)
    assert stage[A].produce() == 10
    requests = stage[B].fetch(3)
    assert [asked(request) for request in requests[:2]] == [(8, 1), (8, 0)]
    stage[B].fetch()
    assert stage[B].epochs == [(0, 0), (2, 10)]
    assert same(stage)


def test_t4_records_of_an_epoch_that_the_leader_never_had():
    stage = eight_in_sync()
    stage[B].produce(size=50)
    stage[B].produce(size=50)
    stage.lead(A, isr=[A])
    stage[A].produce()
    requests = stage[B].fetch(2)
    assert [asked(request) for request in requests] == [(10, 1), (8, 0)]
    stage[B].fetch(2)
    assert same(stage)
    assert stage[B].log.end_offset == 11


def test_t5_several_rounds():
    stage = Stage(2)
    for leader, count in ((A, 2), (B, 2), (A, 0), (B, 2)):  # epochs 0 to 3, elected uncleanly
        stage.lead(leader, isr=[leader])
        if count:
            stage[leader].produce(size=20 + leader)
            stage[leader].produce(size=20 + leader)
    assert stage[A].epochs == [(0, 0), (2, 2)]
    assert stage[B].epochs == [(1, 0), (3, 2)]
    requests = stage[A].fetch(3)
    assert [asked(request) for request in requests] == [(2, 2), (2, 0), (0, -1)]
    stage[A].fetch()
    assert stage[A].epochs == [(1, 0), (3, 2)]
    assert same(stage)


def test_t6_flip_flop_with_batches_of_all_sizes():
    stage = Stage(2)
    stage.lead(A, is_new=True)
    stage[A].produce()
    stage[B].fetch(2)

    def swap(down, up, node):
        stage.stop(down)
        stage.start(up, node)
        stage.lead(up, isr=[up])

    node_a, node_b = stage[A], stage[B]
    stage.stop(A)
    stage.lead(B, isr=[B])
    stage[B].produce()
    swap(B, A, node_a)
    node_a = stage[A]
    for _ in range(3):
        stage[A].produce(count=5, size=100)
    swap(A, B, node_b)
    node_b = stage[B]
    stage[B].produce()
    swap(B, A, node_a)
    stage[A].produce(count=5, size=100)
    stage[A].produce(count=5, size=100)
    stage.start(B, node_b)
    stage.lead(A, isr=[A])
    stage[B].fetch(6)
    assert same(stage)
    assert stage[B].epochs == stage[A].epochs[: len(stage[B].epochs)]


def test_t7_a_follower_does_not_end_within_a_batch():
    stage = Stage(2)
    stage.lead(A, is_new=True)
    for _ in range(100):
        stage[A].produce()
    stage[B].fetch(3)
    node_a, node_b = stage[A], stage[B]
    node_a.log.truncate_to(50, 0)
    stage.stop(B)
    stage.stop(A)
    stage.start(A, node_a)
    stage.lead(A, isr=[A])
    for _ in range(4):
        stage[A].produce(count=20)  # batches that begin elsewhere than the old ones
    stage.start(B, node_b)
    stage.lead(A, isr=[A])
    stage[B].fetch(4)
    assert stage[A].log.end_offset == stage[B].log.end_offset == 130
    assert same(stage)


def test_t8_a_follower_learns_of_an_epoch_with_its_first_record():
    stage = Stage(2)
    stage.lead(A, is_new=True)
    stage[A].produce()
    stage[B].fetch(2)
    assert stage[A].epochs == stage[B].epochs == [(0, 0)]
    node_b = stage[B]
    stage.stop(B)
    stage.start(B, node_b)
    stage.lead(A)
    stage[B].fetch(2)
    assert (stage[A].epochs, stage[B].epochs) == ([(0, 0), (1, 1)], [(0, 0)])
    stage[A].produce()
    stage[B].fetch(2)
    assert stage[B].epochs == [(0, 0), (1, 1)]
    node_a = stage[A]
    stage.stop(A)
    stage.start(A, node_a)
    stage.lead(A)
    assert stage[A].epochs == [(0, 0), (1, 1), (2, 2)]
    stage[B].fetch(2)
    assert stage[B].epochs == [(0, 0), (1, 1)]
    stage[A].produce()
    stage[B].fetch(2)
    assert stage[B].epochs == [(0, 0), (1, 1), (2, 2)]


def test_t9_who_has_all_of_before_the_epoch_joins():
    stage = Stage(2)
    stage.lead(A, is_new=True)
    stage[A].produce()
    stage[B].fetch(2)
    for _ in range(4):
        stage[A].produce()
    assert stage[A].ends == (5, 1)
    stage.lead(A, isr=[A])
    assert stage[A].partition().leadership.epoch_start == 5
    stage[B].fetch()
    assert stage[A].proposals == []
    stage[B].fetch()
    [(_, change)] = stage[A].proposals
    assert change.isr == (A, B)
    stage[A].decide()
    assert stage[A].partition().isr == (A, B)


# Others


def test_what_followers_acknowledged_before_another_led_does_not_count():
    """A leads e0 and does not hear that B led e1; back as leader of e2 it must not count what C had then."""
    stage = Stage(3)
    b, c = 2, 3
    stage.lead(A, is_new=True)
    for _ in range(3):
        stage[A].produce()
    stage[c].fetch(2)  # C has all three, and has said so
    stage[b].fetch(2)
    stage[A].produce()
    stage[c].fetch(2)
    assert stage[A].ends == (4, 3)
    stage.lead(b, tell=[b, c])
    stage[b].produce(size=77)
    stage[c].fetch(3)  # C cuts its fourth record and takes B's
    stage.lead(A)
    stage[b].fetch(4)  # B has all of A's
    assert stage[A].log.high_watermark == 3
    stage[c].fetch(4)
    assert stage[A].log.high_watermark == 4
    assert same(stage)


def test_a_new_leaders_high_watermark_may_lag_until_its_follower_tells():
    stage = two_messages_on_both()
    stage.lead(A)
    assert stage[A].ends == (2, 1)

    def latest(version=9):
        return find_offset(stage[A].partition(), OffsetQuery(LATEST), version=version, now_ms=0)

    def read(offset):
        partition = stage[A].partition()
        [row] = read_all([wanted("t", 0, offset)], lambda _: partition, FetchParams(12, 0, 1, 1 << 20)).rows
        return row.error, row.high_watermark, row.length > 0

    assert latest().error == ErrorCode.OFFSET_NOT_AVAILABLE
    assert latest(4).error == ErrorCode.LEADER_NOT_AVAILABLE
    assert read(1) == (0, 1, False)  # the record is there, and a consumer has seen it from B already
    stage[B].fetch()
    assert latest().offset == 2
    assert read(1) == (0, 2, True)


def test_the_log_start_reaches_followers():
    stage = Stage(2)
    stage.lead(A, is_new=True)
    stage[A].produce()
    stage[A].produce()
    stage[B].fetch(3)
    stage[A].partition().delete_records(1)
    stage[B].fetch(2)
    assert stage[B].log.start_offset == 1
    assert stage[A].partition().leadership.low_watermark() == 1


def test_a_follower_below_the_leaders_start_begins_there():
    stage = Stage(2)
    stage.lead(A, isr=[A], is_new=True)
    stage.cut = [(B, A)]
    for _ in range(4):
        stage[A].produce()
    stage[A].log.set_high_watermark(4)
    stage[A].partition().delete_records(3)
    stage.cut = []
    stage[B].fetch(4)
    assert (stage[B].log.start_offset, stage[B].log.end_offset) == (3, 4)


def test_a_leader_that_begins_within_a_batch_is_followed_from_the_batch():
    stage = Stage(2)
    stage.lead(A, isr=[A], is_new=True)
    stage[A].produce(count=10)
    stage[A].log.set_high_watermark(10)
    stage[A].partition().delete_records(4)
    stage[B].fetch(4)
    assert (stage[B].log.start_offset, stage[B].log.end_offset) == (4, 10)
    assert stage[B].ends == (10, 10)


def test_a_leader_with_a_shorter_log_cuts_a_follower_whose_epochs_it_does_not_know():
    stage = Stage(2)
    stage.lead(A, isr=[A], is_new=True)
    stage[A].produce(count=3)
    stage.lead(B, isr=[B])  # uncleanly, with nothing
    stage[A].fetch(3)
    assert stage[A].ends == (0, 0)
    stage[B].produce()
    stage[A].fetch(2)
    assert same(stage)


def test_consumers_read_from_a_follower_up_to_its_own_mark():
    stage = two_messages_on_both()

    def read(offset):
        partition = stage[A].partition()
        [row] = read_all([wanted("t", 0, offset)], lambda _: partition, FetchParams(11, 0, 1, 1 << 20)).rows
        return row.error, row.high_watermark, row.length > 0

    assert stage[A].ends == (2, 1)
    assert read(0) == (0, 1, True)
    assert read(1) == (0, 1, False)
    assert read(2) == (0, 1, False)  # beyond the mark, within the log
    assert read(3) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1, False)
    stage[A].fetch()
    assert read(1) == (0, 2, True)


def test_a_batch_beyond_the_limit_of_a_partition_is_copied_all_the_same():
    stage = Stage(2)
    stage.lead(A, is_new=True)
    stage[A].produce(count=3, size=700_000)  # 2 MiB; replica.fetch.max.bytes is one
    stage[B].fetch(2)
    assert same(stage)


@pytest.mark.parametrize("written", [True, False])
def test_a_checkpoint_of_marks_that_is_zero_or_missing_loses_nothing(written):
    stage = two_messages_on_both()
    node_a, node_b = stage[A], stage[B]
    for number in (A, B):
        stage[number].log.set_high_watermark(0)
        stage.stop(number, checkpoint=written)
    stage.start(B, node_b)
    stage.start(A, node_a)
    stage.lead(B)
    assert (stage[A].ends, stage[B].ends) == ((2, 0), (2, 0))
    stage[A].fetch(3)
    assert (stage[A].ends, stage[B].ends) == ((2, 2), (2, 2))


@pytest.mark.parametrize("lost", [True, False])
def test_a_reply_that_is_lost_acknowledges_nothing(lost):
    stage = Stage(2)
    stage.lead(A, is_new=True)
    stage[B].fetch(2)
    stage[A].produce()
    stage.lossy = [(B, A)] if lost else []
    stage[B].fetch(2)
    stage.clock.ms += 1000
    stage[B].fetch(2)
    assert stage[A].ends == ((1, 0) if lost else (1, 1))
