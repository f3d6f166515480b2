"""Signals ask a job to end after its batch, a second one at once; what a query raises becomes one line."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from spark_jobs.failures import JobFailed
from spark_jobs.progress import Progress
from spark_jobs.running import JvmHandler, Stopping, run_query


@pytest.fixture
def stopping() -> Iterator[Stopping]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield Stopping()
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_asks_and_a_second_one_insists(stopping: Stopping, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert stopping.asked == 0
    stopping.following = True
    os.kill(os.getpid(), signal.SIGTERM)
    assert stopping.asked == 1
    os.kill(os.getpid(), signal.SIGINT)
    assert stopping.asked == 2
    assert caplog.messages == ["asked to stop: ends after this batch"]


def test_one_signal_to_every_process_is_one_request(stopping: Stopping) -> None:
    stopping.following = True
    JvmHandler(stopping).handle(None)
    os.kill(os.getpid(), signal.SIGTERM)
    assert stopping.asked == 1
    JvmHandler(stopping).handle(None)
    assert stopping.asked == 2


def test_without_a_query_the_second_signal_interrupts(stopping: Stopping) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)


class Query:
    """A query that ends after some looks, with an error if it has one."""

    lastProgress = None

    def __init__(self, looks: int, error: Exception | None = None) -> None:
        self.looks, self.error = looks, error

    def awaitTermination(self, _: float) -> bool:
        self.looks -= 1
        if self.looks < 0 and self.error is not None:
            raise self.error
        return self.looks < 0


def test_a_query_that_ends_by_itself() -> None:
    query: Any = Query(3)
    run_query(query, Progress())
    assert query.looks == -1


def test_a_query_that_fails_raises_one_line() -> None:
    query: Any = Query(1, ValueError("odd"))
    with pytest.raises(JobFailed, match=r"^ValueError: odd$"):
        run_query(query, Progress())
    query = Query(0, JobFailed("row 5"))
    with pytest.raises(JobFailed, match=r"^row 5$"):
        run_query(query, Progress())
