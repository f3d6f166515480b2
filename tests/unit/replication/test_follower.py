"""When a follower counts as caught up."""

from __future__ import annotations

from replication.follower import NEVER_MS, Follower, Pulse

LAG_MS = 30_000


def reading(offset: int, leader_end: int, now_ms: int, pulse: Pulse | None = None) -> Follower:
    follower = Follower(2)
    follower.reset(0, 0, new_leader=True, in_sync=False)
    follower.fetched(offset, 0, leader_end, now_ms, pulse)
    return follower


def test_a_follower_at_the_leaders_end_is_caught_up_now():
    follower = reading(10, 10, 500)
    assert follower.caught_up_ms == 500
    assert (follower.end_offset, follower.log_start_offset) == (10, 0)


def test_one_that_has_what_there_was_at_its_fetch_before_was_caught_up_then():
    follower = reading(3, 10, 500)
    assert follower.caught_up_ms == NEVER_MS
    follower.fetched(10, 0, 20, 900)
    assert follower.caught_up_ms == 500
    follower.fetched(15, 0, 30, 1000)  # not what there was at 900
    assert follower.caught_up_ms == 500
    follower.fetched(30, 0, 40, 1100)
    assert follower.caught_up_ms == 1000


def test_always_one_batch_behind_stays_in_sync_and_stuck_does_not():
    follower = reading(0, 10, 0)
    for step in range(1, 100):
        follower.fetched(step * 10, 0, step * 10 + 10, step * 1000)
    assert follower.caught_up_ms == 98_000
    assert follower.is_caught_up(1000, 99_000 + LAG_MS - 1000, LAG_MS)
    assert not follower.is_caught_up(1000, 99_000 + LAG_MS - 999, LAG_MS)
    for step in range(1, 100):
        follower.fetched(990, 0, 1000 + step, 99_000 + step * 1000)
    assert follower.caught_up_ms == 98_000


def test_an_idle_partition_stays_caught_up_for_ever():
    assert reading(10, 10, 500).is_caught_up(10, 10**9, LAG_MS)
    assert not reading(10, 10, 500).is_caught_up(11, 10**9, LAG_MS)


def test_a_member_of_the_isr_begins_as_caught_up_and_another_does_not():
    follower = Follower(2)
    follower.reset(5000, 7, new_leader=True, in_sync=True)
    assert (follower.caught_up_ms, follower.end_offset, follower.log_start_offset) == (5000, -1, -1)
    follower.reset(6000, 7, new_leader=True, in_sync=False)
    assert follower.caught_up_ms == NEVER_MS


def test_on_a_machine_that_has_just_started_whoever_was_not_in_sync_is_not_caught_up():
    """The clock began with the machine: a moment ago."""
    for pulse in (None, Pulse()):
        follower = reading(3, 10, 5, pulse)
        assert not follower.is_caught_up(10, 10, LAG_MS)
    follower.reset(20, 10, new_leader=False, in_sync=False)
    follower.fetched(10, 0, 20, 30)
    assert not follower.is_caught_up(20, 40, LAG_MS)


def test_a_leader_that_goes_on_under_a_newer_epoch_keeps_what_it_knows():
    follower = reading(10, 10, 500)
    follower.reset(800, 12, new_leader=False, in_sync=True)
    assert (follower.end_offset, follower.log_start_offset, follower.caught_up_ms) == (10, 0, 800)
    follower.fetched(12, 0, 20, 900)  # what there was when the epoch began
    assert follower.caught_up_ms == 800


def test_an_offset_of_before_does_not_count_where_none_is_known():
    follower = Follower(2)
    follower.reset(0, 0, new_leader=True, in_sync=False)
    follower.fetched(5, 0, 10, 700)
    assert follower.caught_up_ms == NEVER_MS


# Sessions: fetches that do not name a partition which had nothing to tell.


def test_each_beat_of_a_session_without_news_is_a_fetch_of_the_end():
    pulse = Pulse()
    pulse.beat(100)
    follower = reading(10, 10, 100, pulse)
    for now_ms in (200, 300, 400):
        pulse.beat(now_ms)
    assert follower.caught_up_ms == 400
    # the leader appends; the next fetch of the session looks at the partition again
    pulse.beat(900)
    follower.fetched(10, 0, 15, 900, pulse)
    assert follower.caught_up_ms == 400
    pulse.beat(1000)
    assert follower.caught_up_ms == 400
    follower.fetched(15, 0, 20, 1000, pulse)
    assert follower.caught_up_ms == 900


def test_a_session_that_ended_beats_no_more():
    pulse = Pulse()
    pulse.beat(100)
    follower = reading(10, 10, 100, pulse)
    pulse.beat(200)
    other = Pulse()
    other.beat(5000)
    follower.fetched(10, 0, 15, 5000, other)
    assert follower.caught_up_ms == 200


def test_a_partition_that_left_its_session_ages():
    pulse = Pulse()
    pulse.beat(100)
    follower = reading(10, 10, 100, pulse)
    pulse.beat(200)
    follower.left()
    pulse.beat(300)
    assert follower.caught_up_ms == 200


def test_a_new_epoch_forgets_the_pulse():
    pulse = Pulse()
    pulse.beat(100)
    follower = reading(10, 10, 100, pulse)
    follower.reset(150, 10, new_leader=False, in_sync=False)
    pulse.beat(300)
    assert follower.caught_up_ms == NEVER_MS
