"""`behaviour` on real movements: a plane is a user, an airport it flies to is what it views.

What is expected comes from a model of event time in plain Python: sessions by gap, the watermark after each
run, what is dropped as late, and what is complete.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from spark_jobs.failures import JobFailed
from spark_jobs.kafka import Kafka, Source
from spark_jobs.options import Stream
from spark_jobs.running import Stopping
from spark_jobs.views.events import Times
from spark_jobs.views.queries import Behaviour, run
from tests.clients.datasets import flights
from tests.spark.jobs.groups import CHANGES
from tests.spark.topics import Record, batch, create, fresh, write
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group(CHANGES)]

FLIGHTS = 5_000  # the first six days of 2013
TIMES = Times("330 minutes", "1 day", "480 minutes", "1 day", "3 days")
GAP, WATERMARK, WITHIN = timedelta(minutes=330), timedelta(days=1), timedelta(minutes=480)
WINDOW, LONGEST = timedelta(days=1), timedelta(days=3)
AHEAD = 2
TIME, TAIL, DEST = 18, 11, 13  # columns of a flight's line


class View(NamedTuple):
    time: datetime
    order: int
    user: str
    item: str


@dataclass
class Model:
    """What the sessions' query must have done after some runs."""

    open: dict[str, list[list[View]]] = field(default_factory=dict)
    watermark: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    complete: list[list[View]] = field(default_factory=list)
    late: list[View] = field(default_factory=list)

    def run(self, views: Iterable[View]) -> None:
        views = list(views)
        for view in views:
            if view.time + GAP <= self.watermark:
                self.late.append(view)
            else:
                self.open.setdefault(view.user, []).append([view])
        self.watermark = max(self.watermark, max(view.time for view in views) - WATERMARK)
        for user, parts in self.open.items():
            joined: list[list[View]] = []
            for view in sorted(itertools.chain(*parts)):
                if joined and view.time < joined[-1][-1].time + GAP:
                    joined[-1].append(view)
                else:
                    joined.append([view])
            self.complete += [one for one in joined if one[-1].time + GAP <= self.watermark]
            self.open[user] = [one for one in joined if one[-1].time + GAP > self.watermark]

    def pairs(self) -> Counter[tuple[str, str, datetime]]:
        """How often the second item came after the first, by the start of the window."""
        found: Counter[tuple[str, str, datetime]] = Counter()
        for session in self.complete:
            for at, first in enumerate(session):
                for second in session[at + 1 : at + 1 + AHEAD]:
                    if second.item != first.item and second.time - first.time <= WITHIN:
                        start = second.time.replace(hour=0, minute=0)
                        found[first.item, second.item, start] += 1
        return found

    def last_pair(self) -> datetime:
        return max(
            second.time
            for session in self.complete
            for at, first in enumerate(session)
            for second in session[at + 1 : at + 1 + AHEAD]
            if second.item != first.item and second.time - first.time <= WITHIN
        )


@pytest.fixture(scope="module")
def broker():
    with OttlaProcess({"log.retention.ms": "-1"}) as broker:  # the flights are of 2013
        yield broker


@pytest.fixture(scope="module")
def views() -> list[View]:
    found = []
    for number, row in enumerate(itertools.islice(flights(), FLIGHTS)):
        cells = row.value.decode().split(",")
        time = datetime.fromisoformat(cells[TIME].replace("Z", "+00:00"))
        if cells[TAIL]:
            found.append(View(time, number, cells[TAIL], cells[DEST]))
    return found


def record_of(view: View) -> Record:
    """All in one partition, so that places follow the order of the list."""
    number = view.order % 3  # all the ways to say it
    time = view.time.isoformat() if number else int(view.time.timestamp() * 1000)
    item = "page" if number == 2 else "item"
    value = {"user": view.user, item: view.item, "event_time": time, "other": {"number": number}}
    return Record(0, json.dumps(value).encode(), key=view.user.encode())


def behaviour(broker: OttlaProcess, topic: str, folder: Path, result: str | None) -> Behaviour:
    return Behaviour(
        Kafka(broker.bootstrap_servers),
        Source((topic,), starting="earliest"),
        str(folder / "out"),
        Stream(str(folder / "checkpoint"), "available-now", folder / "progress.jsonl"),
        result,
        times=TIMES,
        ahead=AHEAD,
    )


def sessions_in(spark: SparkSession, folder: Path) -> list[tuple[object, ...]]:
    rows = spark.read.parquet(str(folder / "out" / "sessions")).collect()
    return sorted(
        (row["user"], tuple((one["time"], one["item"]) for one in row["items"]), row["views"], row["date"])
        for row in rows
    )


def sessions_of(model: Model) -> list[tuple[object, ...]]:
    return sorted(
        (
            session[0].user,
            tuple((view.time.astimezone().replace(tzinfo=None), view.item) for view in session),
            len(session),
            session[0].time.date(),
        )
        for session in model.complete
    )


def test_sessions_pairs_and_late_views_are_those_of_the_model(
    spark: SparkSession,
    broker: OttlaProcess,
    views: list[View],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, result = fresh(broker, 1, stem="views"), "also-viewed"
    create(broker, result, 2)
    job = behaviour(broker, topic, tmp_path, result)
    model = Model()
    cut = 3_000
    old = [view._replace(user=f"late-{view.order}") for view in views[:40]]
    behind = [
        view._replace(user=f"behind-{view.order}", time=view.time - timedelta(hours=8))
        for view in views[cut - 30 : cut]
    ]
    end = View(views[-1].time + timedelta(days=9), FLIGHTS, "the end", "nowhere")
    runs = [views[:cut], [*views[cut:4_000], *old, *behind, *views[4_000:], end]]
    caplog.set_level(logging.INFO)
    for number, some in enumerate(runs):
        write(broker, topic, map(record_of, some))
        caplog.clear()
        run(spark, job)
        model.run(some)
        assert sessions_in(spark, tmp_path) == sessions_of(model), number
        told = [line for line in caplog.messages if line.startswith("sessions ")]
        assert f"{len(some):,} records" in told[0]
        assert ("40 late and dropped" in told[0]) == (number == 1), told
    assert sorted(model.late) == sorted(old)
    assert len(model.complete) > 1_000

    expected = model.pairs()
    assert sum(expected.values()) > 300
    last: dict[bytes, bytes] = {}
    rows = batch(spark, broker, subscribe=result).collect()
    for row in sorted(rows, key=lambda row: row["offset"]):
        last[bytes(row["key"])] = bytes(row["value"])
    assert len(rows) > len(last)  # windows were told again as they grew
    found = {}
    for key, value in last.items():
        told_key, told_value = json.loads(key), json.loads(value)
        assert told_key == {name: told_value[name] for name in told_key}
        start = datetime.fromisoformat(told_key["window_start"].replace("Z", "+00:00"))
        assert told_value["window_end"] == (start + WINDOW).strftime("%Y-%m-%dT%H:%M:%SZ")
        found[told_key["from"], told_key["to"], start] = told_value["count"]
    assert found == dict(expected)

    closed = model.last_pair() - LONGEST
    written = {
        (row["from"], row["to"], row["window_start"].astimezone(UTC)): row["count"]
        for row in spark.read.parquet(str(tmp_path / "out" / "pairs")).collect()
    }
    assert written == {key: count for key, count in expected.items() if key[2] + WINDOW <= closed}
    assert written


def test_an_event_that_says_nothing_ends_the_job_with_its_place_or_is_counted(
    spark: SparkSession,
    broker: OttlaProcess,
    views: list[View],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = fresh(broker, 1, stem="views-bad")
    bad = [b"no json", b'{"user": "u", "item": "i", "event_time": "soon"}', b'{"user": "", "item": "i"}']
    some = [record_of(view) for view in views[:50]]
    write(broker, topic, [*some[:20], *(Record(0, value) for value in bad), *some[20:]])
    job = behaviour(broker, topic, tmp_path, None)
    with pytest.raises(JobFailed, match=rf"topic {topic}, partition 0, offset 20: no event with user"):
        run(spark, job)
    job.skip_bad = True
    caplog.set_level(logging.INFO)
    end = View(views[50].time + timedelta(days=9), 0, "the end", "nowhere")
    write(broker, topic, [record_of(end)])
    run(spark, job)
    told = [line for line in caplog.messages if line.startswith("sessions ")]
    assert "batch 0: 53 records" in told[0]  # the batch that failed comes again as it was
    assert "3 unusable" in told[0]
    assert not any("unusable" in line for line in told[1:])
    model = Model()
    model.run([*views[:50], end])
    assert sessions_in(spark, tmp_path) == sessions_of(model)


@pytest.mark.usefixtures("own_signals")
def test_the_queries_run_together_and_end_when_they_are_asked(
    spark: SparkSession, broker: OttlaProcess, views: list[View], tmp_path: Path
) -> None:
    topic, result = fresh(broker, 1, stem="views-live"), fresh(broker, 1, stem="also-viewed")
    end = View(views[800].time + timedelta(days=9), 0, "the end", "nowhere")
    some = [*views[:800], end]
    write(broker, topic, map(record_of, some))
    job = behaviour(broker, topic, tmp_path, result)
    job.stream.trigger = "fast"
    stopping = Stopping()
    client = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "looks"})

    def ask_when_there_are_results() -> None:
        place = TopicPartition(result, 0)
        try:
            wait_until(lambda: client.get_watermark_offsets(place, timeout=60)[1] > 0, "a pair", 180)
        finally:
            stopping.ask()

    asking = threading.Thread(target=ask_when_there_are_results)
    asking.start()
    run(spark, job, stopping)
    asking.join()
    client.close()
    assert spark.streams.active == []
    model = Model()
    model.run(some)
    assert sessions_in(spark, tmp_path) == sessions_of(model)
    job.stream.trigger = "available-now"
    run(spark, job)  # there is nothing left to do, and nothing comes twice
    assert sessions_in(spark, tmp_path) == sessions_of(model)
    rows = batch(spark, broker, subscribe=result).collect()
    last = {bytes(row["key"]): json.loads(row["value"]) for row in sorted(rows, key=lambda r: r["offset"])}
    assert sum(each["count"] for each in last.values()) == sum(model.pairs().values())
