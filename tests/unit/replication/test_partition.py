"""Appends, the high watermark, roles, waiters and epochs of one partition."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.metadata.image import PartitionImage
from replication.partition import Partition
from storage.errors import AppendRefused, StorageFailed
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import TOPIC_ID, batch, checked, open_manager
from tests.unit.replication.cluster import Parked, produce

ME = 1


def make(files=None, isr=(1,), replicas=(1,), leader=1, epoch=0, **config) -> Partition:
    manager = open_manager(files or SimFileSystem(), config=LogConfig(**config))
    partition = Partition("t", 0, TOPIC_ID, manager.get_or_create("t", 0, TOPIC_ID))
    partition.apply(PartitionImage(0, leader, epoch, 0, isr, replicas), ME)
    return partition


def test_nothing_is_visible_before_the_write_and_everything_after_it():
    partition = make()
    first = partition.append(checked(batch(3)), 1, 0)
    second = partition.append(checked(batch(2)), -1, 0)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 4)
    log = partition.log
    assert (log.end_offset, log.high_watermark) == (0, 0)
    assert partition.committed(4) is None
    partition.write_pending()
    assert (log.end_offset, log.high_watermark, log.last_stable_offset) == (5, 5, 5)
    assert partition.committed(4) == ErrorCode.NONE


def test_a_failed_write_leaves_nothing_and_moves_nothing():
    files = SimFileSystem()
    partition = make(files)
    produce(partition, 2)
    partition.append(checked(batch(3)), 1, 0)
    files.fail_next("append", 28, ".log")
    with pytest.raises(StorageFailed) as failed:
        partition.write_pending()
    assert failed.value.error == ErrorCode.KAFKA_STORAGE_ERROR
    assert not failed.value.offline
    assert (partition.log.end_offset, partition.log.high_watermark) == (2, 2)
    assert produce(partition) == 2
    assert partition.log.high_watermark == 3


@pytest.mark.parametrize(
    ("isr", "replicas", "min_isr", "acks", "error"),
    [
        ((1,), (1,), 1, -1, None),
        ((1,), (1,), 2, -1, None),  # never more than there are replicas
        ((1,), (1, 2, 3), 2, -1, ErrorCode.NOT_ENOUGH_REPLICAS),
        ((1,), (1, 2, 3), 2, 1, None),
        ((1,), (1, 2, 3), 2, 0, None),
        ((1, 2), (1, 2, 3), 2, -1, None),
    ],
)
def test_acks_all_needs_the_in_sync_replicas(isr, replicas, min_isr, acks, error):
    partition = make(isr=isr, replicas=replicas, min_insync_replicas=min_isr)
    if error is None:
        assert produce(partition, acks=acks) == 0
    else:
        with pytest.raises(AppendRefused) as refused:
            produce(partition, acks=acks)
        assert refused.value.error == error
        assert partition.log.next_offset == 0


def test_the_high_watermark_stands_still_below_the_minimum_isr():
    partition = make(isr=(1,), replicas=(1, 2), min_insync_replicas=2)
    produce(partition, 3, acks=1)
    assert (partition.log.end_offset, partition.log.high_watermark) == (3, 0)
    partition.log.config.min_insync_replicas = 1
    partition.apply(PartitionImage(0, 1, 0, 1, (1,), (1, 2)), ME)
    assert partition.log.high_watermark == 3


def test_a_follower_takes_no_appends():
    partition = make(leader=2, isr=(2, 1), replicas=(2, 1))
    with pytest.raises(AppendRefused) as refused:
        produce(partition)
    assert refused.value.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.check(-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.check(-1, leader_required=False) == ErrorCode.NONE
    assert partition.committed(0) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_batches_carry_the_leader_epoch_and_old_images_are_ignored():
    partition = make(epoch=4)
    produce(partition)
    assert partition.log.read(0, 1000, 1).to_bytes()[12:16] == (4).to_bytes(4, "big")
    partition.apply(PartitionImage(0, 1, 6, 3, (1,), (1,)), ME)
    produce(partition)
    assert partition.log.leader_epochs.entries == [(4, 0), (6, 1)]
    partition.apply(PartitionImage(0, 2, 5, 2, (2,), (2, 1)), ME)
    assert (partition.leader_epoch, partition.is_leader) == (6, True)


def test_a_failed_disk_answers_56():
    files = SimFileSystem()
    partition = make(files)
    produce(partition)
    partition.append(checked(batch()), 1, 0)
    files.fail_next("append", 5, ".log")
    with pytest.raises(StorageFailed) as failed:
        partition.write_pending()
    assert failed.value.offline
    assert partition.offline
    assert partition.check(-1) == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(StorageFailed):
        partition.append(checked(batch()), 1, 0)


def test_waiters_are_woken_once_in_order_and_may_park_again():
    partition = make()
    order = []
    second = Parked(lambda: order.append("second"))

    def again():
        order.append("first")
        partition.waiters[first] = None

    first = Parked(again)
    partition.waiters[first] = partition.waiters[second] = None
    produce(partition)
    assert order == []
    partition.wake()
    assert order == ["first", "second"]
    assert list(partition.waiters) == [first]


def test_one_that_fails_takes_nothing_from_the_others(caplog):
    partition = make()

    def fails():
        raise RuntimeError("a fault of one request")

    waiters = [Parked(), Parked(fails), Parked()]
    partition.waiters.update(dict.fromkeys(waiters))
    partition.wake()
    assert [waiter.woken for waiter in waiters] == [1, 1, 1]
    [told] = caplog.records
    assert "a fault of one request" in caplog.text
    assert str(partition) in told.getMessage()


def test_a_change_of_leadership_wakes_and_a_retired_partition_does_too():
    partition = make()
    waiter = Parked()
    partition.waiters[waiter] = None
    partition.apply(PartitionImage(0, 2, 1, 1, (2,), (2, 1)), ME)
    assert waiter.woken == 1
    partition.waiters[waiter] = None
    partition.retire()
    assert waiter.woken == 2
    assert not partition.is_leader


def test_end_offsets_of_epochs():
    partition = make(epoch=2)
    assert partition.epoch_end(2) == (2, 0)  # nothing written yet, but the epoch has begun
    produce(partition, 3)
    partition.apply(PartitionImage(0, 1, 5, 1, (1,), (1,)), ME)
    produce(partition, 4)
    partition.apply(PartitionImage(0, 1, 7, 2, (1,), (1,)), ME)
    assert partition.epoch_end(7) == (7, 7)
    assert partition.epoch_end(6) == (5, 7)
    assert partition.epoch_end(5) == (5, 7)
    assert partition.epoch_end(4) == (2, 3)
    assert partition.epoch_end(2) == (2, 3)
    assert partition.epoch_end(8) == (-1, -1)
    assert partition.epoch_end(-1) == (-1, -1)


def test_an_epoch_that_was_raised_at_the_start_ends_the_older_one_before_any_record():
    files = SimFileSystem()
    manager = open_manager(files)
    before = Partition("t", 0, TOPIC_ID, manager.get_or_create("t", 0, TOPIC_ID))
    before.apply(PartitionImage(0, 1, 0, 0, (1,), (1,)), ME)
    produce(before, 3)
    manager.abandon()
    manager = open_manager(files)
    partition = Partition("t", 0, TOPIC_ID, manager.get_or_create("t", 0, TOPIC_ID))
    partition.apply(PartitionImage(0, 1, 2, 1, (1,), (1,)), ME)
    assert partition.epoch_end(2) == (2, 3)
    assert partition.epoch_end(1) == (0, 3)
    assert partition.epoch_end(0) == (0, 3)
    produce(partition)
    assert partition.epoch_end(1) == (0, 3)
    assert partition.epoch_end(2) == (2, 4)


def test_delete_records_moves_the_start():
    partition = make()
    produce(partition, 5)
    assert partition.delete_records(3) == 3
    assert partition.delete_records(-1) == 5
    assert partition.log.start_offset == 5
