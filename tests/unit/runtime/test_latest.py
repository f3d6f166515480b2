"""The write that began last is what stays."""

from __future__ import annotations

import threading

import pytest

from runtime.latest import Latest


def test_a_write_that_was_overtaken_does_nothing():
    latest, written = Latest(), []
    first = latest.claim(lambda: written.append("first"))
    second = latest.claim(lambda: written.append("second"))
    second()
    first()
    latest.claim(lambda: written.append("third"))()
    assert written == ["second", "third"]


def test_after_a_failure_the_earlier_one_may_still_be_written():
    latest, written = Latest(), []
    first = latest.claim(lambda: written.append("first"))

    def fails():
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        latest.claim(fails)()
    first()
    assert written == ["first"]


def test_writes_on_two_threads_take_turns():
    latest, written = Latest(), []
    inside, gate = threading.Event(), threading.Event()

    def slow():
        inside.set()
        gate.wait(60)
        written.append("slow")

    thread = threading.Thread(target=latest.claim(slow))
    thread.start()
    inside.wait(60)
    other = threading.Thread(target=latest.claim(lambda: written.append("later")))
    other.start()
    assert written == []
    gate.set()
    thread.join(60)
    other.join(60)
    assert written == ["slow", "later"]
