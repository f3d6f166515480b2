"""Waiting for commits in the order of offsets."""

from __future__ import annotations

import logging

from replication.waiting import Commits, wake_all
from tests.unit.replication.cluster import Parked


def test_a_move_takes_those_it_commits():
    commits = Commits()
    first, second, third = Parked(), Parked(), Parked()
    commits.add(first, 3)
    commits.add(second, 5)
    commits.add(third, 9)
    assert commits.take(3) == []
    assert commits.take(6) == [first, second]
    assert len(commits) == 1
    commits.discard(third)
    commits.discard(third)
    assert not commits


def test_a_retry_of_something_older_waits_with_those_in_front():
    commits = Commits()
    new, old = Parked(), Parked()
    commits.add(new, 9)
    commits.add(old, 2)
    assert commits.take(5) == []
    assert commits.take(10) == [new, old]


def test_everybody_goes_when_leadership_does():
    commits = Commits()
    waiters = [Parked(), Parked()]
    for at, waiter in enumerate(waiters):
        commits.add(waiter, at)
    assert commits.take_all() == waiters
    assert commits.take_all() == []


def test_one_that_fails_does_not_keep_the_others(caplog):
    def fail():
        raise RuntimeError("broken")

    other = Parked()
    with caplog.at_level(logging.ERROR):
        wake_all([Parked(fail), other], "t-0")
    assert other.woken == 1
    assert "waited for t-0" in caplog.text
