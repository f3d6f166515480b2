"""What a query did in each batch: one line of the log (stderr), and by option a line of JSON in a file.

    batch 12: 34,567 records in 1.2 s (28,805/s), lag 1,234, offsets orders-0=5120 orders-1=4998

Lag is what the topics hold behind the batch's end, counted when the batch was planned. The file's lines are
objects with batch, ts (ISO 8601), records, seconds, rate, lag (null where the source knows none) and offsets
(by topic and partition, exclusive); `audit` plots them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

SHOWN_PARTITIONS = 8
_log = logging.getLogger(__name__)

Offsets = dict[str, dict[str, int]]


@dataclass(slots=True)
class Batch:
    """Figures of one batch."""

    batch: int
    ts: str
    records: int
    seconds: float
    lag: int | None
    offsets: Offsets
    # counts that are mostly nought: rows that came behind the watermark, and what a job observes
    also: dict[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        text = f"batch {self.batch}: {self.records:,} records in {self.seconds:.1f} s ({self.rate:,.0f}/s)"
        if self.lag is not None:
            text += f", lag {self.lag:,}"
        text += "".join(f", {count:,} {name}" for name, count in self.also.items() if count)
        places = [
            f"{topic}-{partition}={offset}"
            for topic, partitions in sorted(self.offsets.items())
            for partition, offset in sorted(partitions.items(), key=lambda each: int(each[0]))
        ]
        if places:
            more = len(places) - SHOWN_PARTITIONS
            text += ", offsets " + " ".join(places[:SHOWN_PARTITIONS])
            text += f" and {more} more" if more > 0 else ""
        return text

    def as_json(self) -> str:
        return json.dumps(
            {
                "batch": self.batch,
                "ts": self.ts,
                "records": self.records,
                "seconds": round(self.seconds, 3),
                "rate": round(self.rate, 1),
                "lag": self.lag,
                "offsets": self.offsets,
                **self.also,
            }
        )


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """The figures in a query's progress (Spark's JSON)."""
    offsets: Offsets = {}
    lag: int | None = None
    for source in progress.get("sources", []):
        ends, latest = by_partition(source.get("endOffset")), by_partition(source.get("latestOffset"))
        offsets.update(ends)
        if ends and latest:
            lag = (lag or 0) + lag_of(ends, latest)
    seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
    records = int(progress.get("numInputRows", 0))
    late = sum(int(each.get("numRowsDroppedByWatermark", 0)) for each in progress.get("stateOperators", []))
    also = {"late and dropped": late} if late else {}
    for observed in (progress.get("observedMetrics") or {}).values():
        also |= {name: count for name, count in row_of(observed).items() if isinstance(count, int)}
    return Batch(int(progress["batchId"]), str(progress["timestamp"]), records, seconds, lag, offsets, also)


def row_of(observed: Any) -> Mapping[str, Any]:
    """What a query observed: a row of Spark's, or an object."""
    found: Mapping[str, Any] = observed.asDict() if hasattr(observed, "asDict") else observed
    return found


def by_partition(told: Any) -> Offsets:
    """A Kafka source's offsets; empty for those of other sources."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            return {}
    if not isinstance(told, dict):
        return {}
    return {
        topic: {partition: int(offset) for partition, offset in partitions.items()}
        for topic, partitions in told.items()
        if isinstance(partitions, dict)
        and all(str(p).isdigit() and isinstance(o, int) for p, o in partitions.items())
    }


def lag_of(ends: Offsets, latest: Offsets) -> int:
    return sum(
        max(0, offset - ends.get(topic, {}).get(partition, offset))
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


@dataclass(slots=True)
class Progress:
    """Reports the batches of a query, each once. Call `look` now and then, and once at the end."""

    file: Path | None = None
    say: Callable[[str], None] = _log.info
    extra: Callable[[], str] | None = None  # what a job adds to the line, for instance how many it refused
    last: int = field(default=-1, init=False)
    records: int = field(default=0, init=False)

    def look(self, query: StreamingQuery) -> None:
        latest = query.lastProgress
        if latest is None or int(latest["batchId"]) <= self.last:
            return
        # Spark reports a batch that found nothing under the next number, and again when it found something
        known = [latest] if int(latest["batchId"]) == self.last + 1 else query.recentProgress
        for progress in known:
            if int(progress["batchId"]) > self.last and "addBatch" in progress["durationMs"]:
                self.take(batch_of(progress))

    def take(self, batch: Batch) -> None:
        self.last = batch.batch
        self.records += batch.records
        self.say(f"{batch}{self.extra() if self.extra else ''}")
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(batch.as_json() + "\n")
