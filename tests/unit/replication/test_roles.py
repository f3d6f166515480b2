"""Becoming leader and follower."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.roles import become_follower, become_leader
from storage.errors import AppendRefused, StorageFailed
from tests.simulation.files import SimFileSystem
from tests.support.logs import batch, checked
from tests.unit.replication.cluster import Parked, produce
from tests.unit.replication.leading import Led, state


def test_a_leader_notes_its_epoch_even_if_no_record_follows():
    led = Led(epoch=3)
    assert led.partition.log.leader_epochs.entries == [(3, 0)]
    led.produce(4)
    led.lead(epoch=5, version=1)
    led.lead(epoch=7, version=2)
    assert led.partition.log.leader_epochs.entries == [(3, 0), (7, 4)]
    assert led.leadership.epoch_start == 4


def test_a_state_that_is_overtaken_changes_nothing():
    led = Led(epoch=3, version=4)
    assert not led.lead(epoch=5, version=3)
    assert not become_follower(led.partition, state(leader=2, epoch=5, version=3))
    assert (led.partition.leader_epoch, led.partition.is_leader) == (3, True)


def test_a_leader_does_not_truncate():
    led = Led(isr=(1, 2))
    led.produce(5)
    assert led.mark == 0
    become_follower(led.partition, state(leader=2, epoch=1, version=1))
    led.lead(epoch=2, version=2)
    assert led.partition.log.end_offset == 5


def test_without_other_replicas_there_is_nothing_to_keep():
    led = Led(isr=(1,), replicas=(1,))
    assert led.leadership is None
    assert led.partition.alone
    led.produce(2)
    assert led.mark == 2
    led.lead(epoch=1, version=1, isr=(1,), replicas=(1, 2))
    assert led.leadership is not None
    led.lead(epoch=2, version=2, isr=(1,), replicas=(1,))
    assert led.leadership is None


def test_followers_are_unknown_to_a_new_leader_and_known_to_one_that_goes_on():
    led = Led()
    led.fetch(2, 0)
    led.lead(epoch=1, version=1)
    assert led.leadership.followers[2].end_offset == 0
    become_follower(led.partition, state(leader=2, epoch=2, version=2))
    assert led.leadership is None
    led.lead(epoch=3, version=3)
    assert led.leadership.followers[2].end_offset == -1
    assert led.leadership.followers[2].caught_up_ms == led.cluster.now_ms


def test_who_led_on_after_others_did_knows_nothing_of_its_followers():
    led = Led()
    led.produce(3)
    led.fetch(2, 3)
    led.lead(epoch=1, version=1)
    assert led.leadership.followers[2].end_offset == 3
    led.lead(epoch=3, version=3)
    assert led.leadership.followers[2].end_offset == -1


def test_a_follower_serves_nobody_as_leader():
    led = Led()
    waiting, commit = Parked(), Parked()
    led.produce(2, acks=-1)
    led.partition.waiters[waiting] = None
    led.partition.await_commit(commit, 1)
    assert become_follower(led.partition, state(leader=2, epoch=1, version=1))
    assert (waiting.woken, commit.woken) == (1, 1)
    assert led.partition.committed(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert led.partition.check(1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (led.partition.leader_id, led.partition.isr) == (2, ())
    with pytest.raises(AppendRefused) as refused:
        produce(led.partition)
    assert refused.value.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_same_leader_under_a_newer_epoch_is_a_new_beginning():
    led = Led()
    assert become_follower(led.partition, state(leader=2, epoch=1, version=1))
    assert become_follower(led.partition, state(leader=2, epoch=2, version=2))
    assert not become_follower(led.partition, state(leader=2, epoch=2, version=3))
    assert led.partition.partition_epoch == 3


def test_what_was_staged_as_leader_is_written_before_the_role_changes():
    led = Led(epoch=1)
    led.partition.append(checked(batch(2)), 1, 0)
    become_follower(led.partition, state(leader=2, epoch=2, version=1))
    assert led.partition.log.end_offset == 2
    led.lead(epoch=3, version=2)
    led.partition.append(checked(batch(2)), 1, 0)
    led.lead(epoch=4, version=3)
    assert led.partition.log.leader_epochs.entries == [(1, 0), (3, 2), (4, 4)]


def test_a_full_disk_keeps_a_leader_from_leading():
    files = SimFileSystem()
    led = Led(files)
    files.fail_next("append", 28, "leader-epoch")
    with pytest.raises(StorageFailed):
        become_leader(led.partition, state(epoch=1, version=1), led.cluster.context)
    assert led.partition.leader_epoch == 0


def test_acks_all_is_promised_by_the_others_and_less_by_nobody_once_fenced():
    led = Led()
    led.partition.fenced = True
    for acks in (0, 1):
        with pytest.raises(AppendRefused) as refused:
            led.produce(acks=acks)
        assert refused.value.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    led.produce(acks=-1)
    assert led.partition.committed(0) is None
