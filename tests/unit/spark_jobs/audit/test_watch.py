"""Watching two topics: each look is a batch; it ends when the right has caught up, or nothing comes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.audit.watch import Watch


def turns(*values: int) -> Iterator[int]:
    yield from values
    while True:
        yield values[-1]


def test_it_looks_until_the_right_has_caught_up(tmp_path: Path) -> None:
    right = turns(0, 0, 40, 100)  # the first is what was there before
    watch = Watch(lambda: 100, lambda: next(right), 0.001, 60, tmp_path / "watch.jsonl")
    watch.run(lambda: False)
    assert watch.series.lags == [100, 60, 0]
    told = [json.loads(line) for line in (tmp_path / "watch.jsonl").read_text().splitlines()]
    assert [(each["batch"], each["records"], each["lag"]) for each in told] == [
        (0, 0, 100),
        (1, 40, 60),
        (2, 60, 0),
    ]


def test_it_gives_up_when_nothing_comes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    right = turns(0, 0, 40)
    watch = Watch(lambda: 100, lambda: next(right), 0.001, 0.01)
    watch.run(lambda: False)
    assert watch.series.lags[-1] == 60
    assert "60 records are missing" in caplog.text


def test_it_ends_when_it_is_told_to() -> None:
    asked = turns(False, True)
    watch = Watch(lambda: 100, lambda: 0, 0.001, 60)
    watch.run(lambda: bool(next(asked)))
    assert len(watch.series.lags) == 1
