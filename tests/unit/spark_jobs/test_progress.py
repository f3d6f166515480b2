"""Spark's progress becomes one line and one JSON object for each batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spark_jobs.progress import Progress, batch_of


def progress(
    number: int, records: int = 10, end: int = 10, latest: int = 10, ran: bool = True
) -> dict[str, Any]:
    return {
        "batchId": number,
        "timestamp": "2026-11-28T12:00:00.000Z",
        "numInputRows": records,
        "durationMs": {"triggerExecution": 500, **({"addBatch": 400} if ran else {})},
        "sources": [
            {
                "endOffset": {"orders": {"0": end, "10": 3, "2": 4}},
                "latestOffset": {"orders": {"0": latest, "10": 3, "2": 4}},
            }
        ],
    }


class Query:
    """What Progress asks of a query."""

    def __init__(self) -> None:
        self.recentProgress: list[dict[str, Any]] = []

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self.recentProgress[-1] if self.recentProgress else None


def test_the_line_of_a_batch() -> None:
    batch = batch_of(progress(12, records=34_567, end=5120, latest=6354))
    assert str(batch) == (
        "batch 12: 34,567 records in 0.5 s (69,134/s), lag 1,234, "
        "offsets orders-0=5120 orders-2=4 orders-10=3"
    )


def test_many_partitions_are_counted() -> None:
    told = progress(0)
    told["sources"][0]["endOffset"] = {"t": {str(number): 1 for number in range(20)}}
    assert str(batch_of(told)).endswith(" t-7=1 and 12 more")


def test_a_source_of_files_has_no_lag_and_no_offsets() -> None:
    told = progress(0)
    told["sources"] = [{"endOffset": {"logOffset": 3}, "latestOffset": None}]
    assert str(batch_of(told)) == "batch 0: 10 records in 0.5 s (20/s)"
    told["sources"] = [
        {"endOffset": {"files": {"1-2": {"path": "/a", "at": 5, "head": 5, "crc": 1, "life": 0}}}}
    ]
    assert batch_of(told).offsets == {}


def test_each_batch_is_told_once_and_in_order(tmp_path: Path) -> None:
    lines: list[str] = []
    file = tmp_path / "progress.jsonl"
    watch, query = Progress(file, lines.append, extra=lambda: " and more"), Query()
    watch.look(query)
    query.recentProgress.append(progress(0))
    watch.look(query)
    watch.look(query)
    query.recentProgress += [progress(1), progress(2), progress(3, records=0, ran=False)]
    watch.look(query)
    watch.look(query)
    query.recentProgress.append(progress(3, records=5))
    watch.look(query)
    assert [line.split(" records")[0] for line in lines] == [
        f"batch {n}: {r}" for n, r in enumerate([10, 10, 10, 5])
    ]
    assert all(line.endswith(" and more") for line in lines)
    assert watch.records == 35
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert told[3] == {
        "batch": 3,
        "ts": "2026-11-28T12:00:00.000Z",
        "records": 5,
        "seconds": 0.5,
        "rate": 10.0,
        "lag": 0,
        "offsets": {"orders": {"0": 10, "2": 4, "10": 3}},
    }
