"""Pauses between the starts of a broker that ends again and again."""

from __future__ import annotations

import signal

from ottla.brokers.restarts import ATTEMPTS_MAX, HOLDS_OUT_S, LONGEST_PAUSE_S, REFUSED, Restarts, how_it_ended

KILLED = -signal.SIGKILL


def test_a_broker_that_cannot_start_is_given_up() -> None:
    assert Restarts().pause_after(REFUSED, None) is None


def test_one_that_is_killed_at_its_first_starts_is_tried_a_few_times() -> None:
    restarts = Restarts()
    pauses = [restarts.pause_after(KILLED, None) for _ in range(ATTEMPTS_MAX)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, None]


def test_one_that_has_served_is_never_given_up_and_waits_longer_and_longer() -> None:
    restarts = Restarts()
    assert restarts.pause_after(KILLED, 0.0) == 0.1
    pauses = [restarts.pause_after(REFUSED, None) for _ in range(5000)]
    assert pauses[:7] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, LONGEST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_one_that_held_out_begins_anew() -> None:
    restarts = Restarts()
    for _ in range(3):
        restarts.pause_after(KILLED, 1.0)
    assert restarts.pause_after(KILLED, HOLDS_OUT_S) == 0.1
    assert restarts.pause_after(KILLED, HOLDS_OUT_S - 1) == 0.2


def test_ends_in_words() -> None:
    assert how_it_ended(1) == "ended with exit code 1"
    assert how_it_ended(KILLED) == "was killed by signal 9"
