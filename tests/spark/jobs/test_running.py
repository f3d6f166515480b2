"""A job that is asked to stop ends where no batch has begun: all that the checkpoint plans is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.running import Stopping, end_after_batch
from tests.spark.topics import TIMEOUT_S, Running, fresh, numbered, places, stream, write
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark

SOON = {"processingTime": "0 seconds"}
HOURLY = {"processingTime": "1 hour"}


@pytest.fixture
def topic(jobs_broker: OttlaProcess) -> str:
    name = fresh(jobs_broker, 1, stem="running")
    write(jobs_broker, name, numbered([0], 0, 100))
    return name


@contextmanager
def making_a_batch(running: Running, broker: OttlaProcess) -> Iterator[None]:
    """The query, whose first batch was held, asks for the next one's offsets until the block is left: the
    broker answers nobody.
    """
    wait_until(lambda: running.batches, "the first batch", TIMEOUT_S)
    broker.signal(signal.SIGSTOP)
    try:
        running.pass_on()
        wait_until(
            lambda: running.query.status["message"].startswith("Getting offsets"),
            "a batch to be made",
            TIMEOUT_S,
        )
        yield
    finally:
        broker.signal(signal.SIGCONT)


def in_tens(spark: SparkSession, broker: OttlaProcess, topic: str) -> DataFrame:
    return stream(spark, broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=10)


def made_and_done(checkpoint: Path) -> tuple[list[int], list[int]]:
    """Batches that were planned, and those that are committed."""
    made, done = (
        sorted(int(path.name) for path in (checkpoint / kind).glob("[0-9]*"))
        for kind in ("offsets", "commits")
    )
    return made, done


def ending(query: StreamingQuery, stopping: Stopping | None = None) -> threading.Thread:
    thread = threading.Thread(target=end_after_batch, args=(query, stopping))
    thread.start()
    return thread


def wait_until_asked(query: StreamingQuery) -> None:
    java: Any = query._jsq
    lock = java.streamingQuery().awaitProgressLock()
    wait_until(lambda: lock.hasQueuedThreads() or not query.isActive, "the end to be asked for", TIMEOUT_S)


def test_asked_while_a_batch_is_made(
    spark: SparkSession,
    jobs_broker: OttlaProcess,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spark 4.2 interrupts a batch between its plan and its run when its query counts as ended by then."""
    monkeypatch.setattr("spark_jobs.running.LOCK_MS", TIMEOUT_S * 1000)  # in the queue without a break
    with Running(in_tens(spark, jobs_broker, topic), tmp_path, held=True, **SOON) as running:
        with making_a_batch(running, jobs_broker):
            thread = ending(running.query)
            wait_until_asked(running.query)
        thread.join()
    assert made_and_done(tmp_path) == ([0, 1], [0, 1])
    assert running.seen == places(topic, {0: (0, 20)})


def test_asked_while_a_batch_runs(
    spark: SparkSession, jobs_broker: OttlaProcess, topic: str, tmp_path: Path
) -> None:
    with Running(in_tens(spark, jobs_broker, topic), tmp_path, held=True, **SOON) as running:
        wait_until(lambda: running.batches, "the first batch", TIMEOUT_S)
        thread = ending(running.query)
        running.pass_on()
        thread.join()
    made, done = made_and_done(tmp_path)
    assert made == done
    assert running.seen == places(topic, {0: (0, 10 * len(done))})


@pytest.mark.parametrize("trigger", [SOON, HOURLY], ids=["fast", "hourly"])
def test_asked_while_there_is_nothing_to_do(
    spark: SparkSession, jobs_broker: OttlaProcess, topic: str, tmp_path: Path, trigger: dict[str, str]
) -> None:
    """A query that looks for records all the time, and one that waits for its hour."""
    seen = stream(spark, jobs_broker, subscribe=topic, startingOffsets="earliest")
    with Running(seen, tmp_path, **trigger) as running:
        running.wait_for(places(topic, {0: (0, 100)}))
        wait_until(lambda: made_and_done(tmp_path)[1] == [0], "the batch's commit", TIMEOUT_S)
        end_after_batch(running.query)
        assert not running.query.isActive
    assert made_and_done(tmp_path) == ([0], [0])


@pytest.mark.usefixtures("own_signals")
def test_asked_twice_while_the_broker_is_silent(
    spark: SparkSession, jobs_broker: OttlaProcess, topic: str, tmp_path: Path
) -> None:
    """The second request does not wait for the batch that is made."""
    stopping = Stopping()
    stopping.following = True
    with Running(in_tens(spark, jobs_broker, topic), tmp_path, held=True, **SOON) as running:
        with making_a_batch(running, jobs_broker):
            stopping.ask()
            thread = ending(running.query, stopping)
            wait_until_asked(running.query)
            assert running.query.isActive
            stopping.ask()
            wait_until(lambda: not running.query.isActive, "the query to be broken off", TIMEOUT_S)
        thread.join()
    assert made_and_done(tmp_path) == ([0], [0])
    assert running.seen == places(topic, {0: (0, 10)})
