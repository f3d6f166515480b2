"""Progress files as pictures."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.failures import JobFailed
from spark_jobs.plot import Series, draw, plot_files, read
from spark_jobs.progress import Batch


def line(number: int, rate: float, lag: int | None) -> str:
    batch = Batch(number, f"2026-01-01T00:00:{number:02}.500Z", int(rate), 1.0, lag, {"t": {"0": number}})
    return batch.as_json() + "\n"


def test_a_progress_file_is_read_batch_by_batch(tmp_path: Path) -> None:
    file = tmp_path / "drain.jsonl"
    file.write_text(line(0, 100, 300) + "\n" + line(1, 250, None) + line(2, 50, 0))
    found = read(file)
    assert found.name == "drain"
    assert found.times == [datetime(2026, 1, 1, 0, 0, second, 500_000, tzinfo=UTC) for second in range(3)]
    assert found.rates == [100, 250, 50]
    assert found.lag_times == [found.times[0], found.times[2]]
    assert found.lags == [300, 0]


def test_a_half_written_last_line_is_left_out_and_a_foreign_file_refused(tmp_path: Path) -> None:
    file = tmp_path / "job.jsonl"
    file.write_text(line(0, 100, 300) + line(1, 1, 1)[:20])
    assert read(file).rates == [100]
    file.write_text(json.dumps({"ts": "soon"}) + "\n" + line(1, 1, 1))
    with pytest.raises(JobFailed, match=r"job\.jsonl, line 1: no line of progress"):
        read(file)


@pytest.mark.parametrize(("name", "magic"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_pictures_are_of_the_kind_that_the_name_says(tmp_path: Path, name: str, magic: bytes) -> None:
    for job in ("before", "after"):
        (tmp_path / f"{job}.jsonl").write_text(line(0, 100, 300) + line(1, 200, 0))
    plot_files([tmp_path / "before.jsonl", tmp_path / "after.jsonl"], tmp_path / name)
    drawn = (tmp_path / name).read_bytes()
    assert drawn.startswith(magic)
    assert len(drawn) > 5_000


def test_what_can_t_be_drawn_is_said(tmp_path: Path) -> None:
    some = Series("job", [datetime(2026, 1, 1, tzinfo=UTC)], [1.0])
    with pytest.raises(JobFailed, match=r"the plot can be \.png, \.svg, \.pdf"):
        draw([some], tmp_path / "picture.bmp")
    with pytest.raises(JobFailed, match="job: there is no batch to plot yet"):
        draw([Series("job")], tmp_path / "picture.png")
