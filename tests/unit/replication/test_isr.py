"""Decisions about the in-sync replicas."""

from __future__ import annotations

import pytest

from replication.follower import Follower
from replication.isr import expanded, high_watermark, is_in_sync, shrunk


def follower(broker_id, end_offset=0, epoch=-1):
    made = Follower(broker_id)
    made.end_offset, made.broker_epoch = end_offset, epoch
    return made


def test_an_expansion_counts_with_the_new_member_at_once_and_tells_its_registration():
    two, three = follower(2, epoch=70), follower(3, epoch=80)
    change = expanded((1, 2), three, {2: two, 3: three})
    assert change.members == ((1, -1), (2, 70), (3, 80))
    assert change.isr == (1, 2, 3)
    assert change.maximal == {1, 2, 3}


def test_a_shrink_counts_with_the_old_members_until_it_is_committed():
    followers = {2: follower(2), 3: follower(3, epoch=80)}
    change = shrunk((3, 1, 2), [2], followers)
    assert change.members == ((3, 80), (1, -1))
    assert change.maximal == {1, 2, 3}


@pytest.mark.parametrize(
    ("offset", "mark", "epoch_start", "joins"),
    [(5, 5, 5, True), (4, 5, 0, False), (5, 1, 6, False), (9, 5, 6, True), (1, 1, 5, False)],
)
def test_who_joins_has_what_is_committed_and_what_is_older_than_the_epoch(offset, mark, epoch_start, joins):
    assert is_in_sync(follower(2, offset), mark, epoch_start) is joins


def test_the_high_watermark_is_the_least_end():
    assert high_watermark(10, []) == 10
    assert high_watermark(10, [follower(2, 7), follower(3, 12)]) == 7
    assert high_watermark(10, [follower(2, -1)]) == -1
