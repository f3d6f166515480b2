"""What a leader makes of its followers' fetches: high watermark, ISR, and the controller's answers."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.follower import REFUSED_MS, Pulse
from storage.errors import AppendRefused
from storage.log_config import LogConfig
from tests.unit.replication.cluster import Parked
from tests.unit.replication.leading import LAG_MS, Led


def test_the_high_watermark_is_the_least_end_of_the_isr():
    led = Led()
    led.produce(5)
    assert led.mark == 0
    assert not led.fetch(2, 5)
    assert led.mark == 0  # nobody knows where the third is
    assert led.fetch(3, 3)
    assert led.mark == 3
    assert led.fetch(3, 5)
    assert led.mark == 5
    assert not led.fetch(3, 5)


def test_it_never_goes_back():
    led = Led()
    led.produce(5)
    led.fetch(2, 5)
    led.fetch(3, 5)
    assert not led.fetch(3, 1)
    assert led.mark == 5


def test_it_stands_still_under_the_minimum_isr():
    led = Led(min_isr=2, isr=(1,))
    led.cluster.dead = [2, 3]
    led.produce(3)
    assert led.mark == 0
    with pytest.raises(AppendRefused) as refused:
        led.produce(acks=-1)
    assert refused.value.error == ErrorCode.NOT_ENOUGH_REPLICAS


def test_the_minimum_isr_is_never_more_than_the_replicas():
    led = Led(min_isr=3, isr=(1, 2), replicas=(1, 2))
    led.produce(2, acks=-1)
    assert led.fetch(2, 2)
    assert led.mark == 2


def test_it_stands_still_while_one_in_sync_has_no_replica_any_more():
    """A reassignment drops replicas first, and takes them out of the ISR next. If the controller dies in
    between, the next one may have them lead.
    """
    led = Led(isr=(1, 3), replicas=(1, 3, 2))
    led.produce(2)
    led.fetch(3, 2)
    led.lead(epoch=1, version=1, isr=(1, 3), replicas=(1,))
    led.produce(3)
    assert not led.fetch(3, 5)
    assert led.mark == 2
    led.lead(epoch=2, version=2, isr=(1,), replicas=(1,))
    assert led.mark == 5


def test_one_in_sync_without_a_replica_leaves_the_isr_for_its_lag():
    led = Led(isr=(1, 3), replicas=(1, 3, 2))
    led.lead(epoch=1, version=1, isr=(1, 3), replicas=(1,))
    led.produce(3)
    assert led.leadership.shrink()
    assert led.cluster.proposals[-1].isr == (1,)
    assert led.mark == 0
    led.decide()
    assert led.mark == 3


def test_alone_in_the_isr_the_leader_commits_by_itself():
    led = Led(isr=(1,))
    led.cluster.dead = [2, 3]
    led.produce(3)
    assert led.mark == 3
    assert not led.partition.alone  # others exist, and may hold it


def test_a_caught_up_follower_outside_of_the_isr_holds_the_high_watermark():
    led = Led(isr=(1,))
    led.produce(3)
    led.cluster.dead = [2]
    led.fetch(2, 3)  # it is not known yet as alive, and does not join
    led.cluster.dead = []
    led.produce(2)
    assert led.mark == 3
    led.cluster.dead = [2, 3]
    assert led.leadership.advance()
    assert led.mark == 5


def test_one_that_was_refused_holds_it_up_again_when_it_fetches():
    """A broker that stops is refused, and may not fetch again: whoever waits is told at once."""
    led = Led(isr=(1, 3))
    led.produce(3)
    led.fetch(2, 3)
    led.produce(2, acks=-1)
    led.fetch(3, 5)
    assert led.mark == 3  # 2 may be in sync by now
    waiter = Parked()
    led.partition.await_commit(waiter, 4)
    led.decide(ErrorCode.INELIGIBLE_REPLICA)
    assert (led.mark, waiter.woken) == (5, 1)
    led.produce(1)
    led.fetch(3, 6)
    assert led.mark == 6
    led.fetch(2, 5, after_ms=REFUSED_MS)  # below the mark: it is not proposed, and was caught up just now
    led.produce(1)
    led.fetch(3, 7)
    assert led.mark == 6


def test_one_that_was_refused_is_not_proposed_again_at_once():
    led = Led(isr=(1,), replicas=(1, 2))
    led.fetch(2, 0)
    led.decide(ErrorCode.INELIGIBLE_REPLICA)
    led.produce(3)
    led.fetch(2, 3, after_ms=REFUSED_MS - 1)
    assert (led.mark, len(led.cluster.proposals)) == (3, 1)  # nor does it hold up anybody
    led.fetch(2, 3, after_ms=1)
    assert (len(led.cluster.proposals), led.cluster.proposals[-1].isr) == (2, (1, 2))


def test_a_follower_that_is_not_caught_up_does_not():
    led = Led(isr=(1,))
    led.produce(3)
    led.fetch(2, 1, after_ms=LAG_MS * 2)
    led.produce(1)
    assert led.mark == 4


def test_a_follower_joins_when_it_has_all_that_is_committed():
    led = Led(isr=(1, 2))
    led.produce(5)
    led.fetch(2, 5)
    led.fetch(3, 4)
    assert led.cluster.proposals == []
    led.fetch(3, 5)
    [change] = led.cluster.proposals
    assert change.isr == (1, 2, 3)
    assert led.leadership.maximal == {1, 2, 3}
    assert led.partition.isr == (1, 2)
    led.produce(1)
    led.fetch(2, 6)
    assert led.mark == 5  # the new member counts before the controller has said so
    assert not led.decide(isr=(1, 2, 3))
    assert (led.partition.isr, led.partition.partition_epoch) == ((1, 2, 3), 1)
    assert led.leadership.pending is None


def test_a_follower_that_is_not_alive_does_not_join():
    led = Led(isr=(1,))
    led.cluster.dead = [2]
    led.fetch(2, 0)
    assert led.cluster.proposals == []


def test_a_new_leaders_followers_join_at_the_start_of_its_epoch():
    """T9: e8, high watermark 1, end 5; back as leader of e10 it lets in who has all five, not who has one."""
    led = Led(epoch=8)
    led.produce(5)
    led.fetch(2, 1)
    led.fetch(3, 1)
    assert led.mark == 1
    led.lead(epoch=10, version=3, isr=(1, 2))
    assert led.leadership.epoch_start == 5
    led.fetch(3, 1)
    assert led.cluster.proposals == []
    led.fetch(3, 5)
    assert [change.isr for change in led.cluster.proposals] == [(1, 2, 3)]


def test_one_change_is_in_flight():
    led = Led(isr=(1,))
    led.fetch(2, 0)
    led.fetch(3, 0)
    assert [change.isr for change in led.cluster.proposals] == [(1, 2)]
    led.decide()
    led.fetch(3, 0)
    assert [change.isr for change in led.cluster.proposals] == [(1, 2), (1, 2, 3)]


def test_who_lags_is_dropped_and_holds_the_high_watermark_until_that_is_committed():
    led = Led()
    led.produce(2)
    led.fetch(2, 2)
    led.fetch(3, 1)
    led.cluster.now_ms += LAG_MS
    assert not led.leadership.shrink()
    led.cluster.now_ms += 1
    led.fetch(2, 2)
    assert led.leadership.shrink()
    assert [change.isr for change in led.cluster.proposals] == [(1, 2)]
    assert led.mark == 1
    assert not led.leadership.shrink()  # one is in flight
    led.decide()
    assert led.mark == 2
    assert led.partition.isr == (1, 2)


def test_an_idle_partition_never_shrinks():
    led = Led()
    led.fetch(2, 0)
    led.fetch(3, 0)
    led.cluster.now_ms += LAG_MS * 100
    assert not led.leadership.shrink()


def test_a_frozen_follower_is_dropped_when_there_is_something_to_read():
    led = Led()
    pulse = Pulse()
    pulse.beat(led.cluster.now_ms)
    led.fetch(2, 0, pulse=pulse)
    led.fetch(3, 0)
    led.cluster.now_ms += LAG_MS * 100
    pulse.beat(led.cluster.now_ms)
    led.produce()
    led.leadership.shrink()
    assert [change.isr for change in led.cluster.proposals] == [(1, 2)]


@pytest.mark.parametrize("error", [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA])
def test_what_was_certainly_not_applied_is_taken_back(error):
    led = Led(isr=(1, 2))
    led.fetch(3, 0)
    assert not led.decide(error)
    assert led.leadership.pending is None
    assert led.leadership.maximal == {1, 2}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_what_may_have_been_applied_stays_pending_until_a_new_leader_and_isr(error):
    led = Led(isr=(1, 2))
    led.fetch(3, 0)
    assert not led.decide(error)
    assert led.leadership.maximal == {1, 2, 3}
    led.fetch(3, 0)
    led.leadership.shrink()
    assert len(led.cluster.proposals) == 1
    led.lead(epoch=1, version=2, isr=(1, 2))
    assert led.leadership.maximal == {1, 2}
    led.fetch(3, 0)
    assert len(led.cluster.proposals) == 2


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR])
def test_anything_else_is_sent_again(error):
    led = Led(isr=(1, 2))
    led.fetch(3, 0)
    assert led.decide(error)
    assert led.leadership.pending is not None


def test_an_answer_that_a_new_epoch_overtook_is_void():
    led = Led(isr=(1, 2))
    led.fetch(3, 0)
    led.lead(epoch=1, version=4, isr=(1,))
    assert not led.decide(version=9, epoch=0, isr=(1, 2, 3))
    assert (led.partition.isr, led.partition.partition_epoch) == ((1,), 4)


@pytest.mark.parametrize(("version", "epoch"), [(4, 0), (6, 3)])
def test_a_success_of_another_epoch_or_an_older_version_changes_nothing(version, epoch):
    led = Led(isr=(1, 2), version=5)
    led.fetch(3, 0)
    assert not led.decide(version=version, epoch=epoch)
    assert (led.partition.isr, led.partition.partition_epoch) == ((1, 2), 5)
    assert led.leadership.pending is not None


def test_a_success_with_the_known_version_is_the_answer_to_a_retry():
    led = Led(isr=(1, 2), version=5)
    led.fetch(3, 0)
    led.decide(version=5)
    assert led.partition.isr == (1, 2, 3)


def test_a_fetch_from_before_a_followers_restart_tells_nothing():
    led = Led(isr=(1,))
    led.produce(3)
    led.fetch(2, 1, broker_epoch=70)
    led.fetch(2, 3, broker_epoch=60)
    assert led.cluster.proposals == []
    led.fetch(2, 3, broker_epoch=70)
    assert led.cluster.proposals[0].members == ((1, -1), (2, 70))


def test_a_stranger_is_nobody():
    assert not Led().fetch(9, 0)


def test_the_low_watermark_is_the_least_start_of_the_live():
    led = Led()
    assert led.leadership.low_watermark() == -1
    led.fetch(2, 0, start=0)
    led.produce(4)
    led.fetch(3, 4, start=2)
    led.fetch(2, 4, start=1)
    led.partition.log.set_high_watermark(4)
    led.partition.log.delete_records(3)
    assert led.leadership.low_watermark() == 1
    led.cluster.dead = [2]
    assert led.leadership.low_watermark() == 2


def test_a_follower_whose_start_moved_is_news_for_deletions_only():
    led = Led()
    led.fetch(2, 0, start=0)
    assert not led.fetch(2, 0, start=1)
    led.leadership.deleting = 1
    assert led.fetch(2, 0, start=2)
    assert not led.fetch(2, 0, start=2)


def test_new_replicas_come_and_old_ones_go_with_the_assignment():
    led = Led()
    led.produce(2)
    led.fetch(2, 2)
    led.lead(epoch=1, version=1, isr=(1, 2, 3), replicas=(1, 2, 4))
    assert list(led.leadership.followers) == [2, 4]
    assert led.leadership.followers[2].end_offset == 2
    assert led.leadership.lagging() == [3]  # in the ISR, and not a replica any more


def test_a_lower_minimum_commits_at_once_what_it_held_back():
    led = Led(min_isr=2, isr=(1,))
    commit = Parked()
    led.produce(3)
    led.partition.await_commit(commit, 2)
    assert led.mark == 0
    led.partition.update_config(LogConfig(min_insync_replicas=3))
    assert (led.mark, commit.woken) == (0, 0)
    led.partition.update_config(LogConfig(min_insync_replicas=1))
    assert (led.mark, commit.woken) == (3, 1)
