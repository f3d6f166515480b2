"""Lag and throughput over time as a picture, from the progress files of jobs (PNG, SVG or PDF by the name).

Several files are several lines: a job before and after a change, or the stages of a pipeline.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from spark_jobs.failures import JobFailed

FORMATS = (".png", ".svg", ".pdf")


@dataclass(slots=True)
class Series:
    """One job over time: when each batch ended, its rate (records/s), and the lag behind it."""

    name: str
    times: list[datetime] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    lag_times: list[datetime] = field(default_factory=list)
    lags: list[int] = field(default_factory=list)

    def add(self, time: datetime, rate: float, lag: int | None) -> None:
        self.times.append(time)
        self.rates.append(rate)
        if lag is not None:
            self.lag_times.append(time)
            self.lags.append(lag)


def read(path: Path) -> Series:
    """A progress file. The last line may be half written; any other that is no progress is refused."""
    found = Series(path.stem)
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            batch = json.loads(line)
            time = datetime.fromisoformat(batch["ts"].replace("Z", "+00:00"))
            found.add(time, float(batch["rate"]), batch["lag"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if number == len(lines):
                break
            raise JobFailed(f"{path}, line {number}: no line of progress ({error})") from error
    return found


def draw(series: Sequence[Series], path: Path, title: str = "") -> None:
    """Writes the picture. Raises JobFailed where matplotlib is not installed or the kind is unknown."""
    if path.suffix.lower() not in FORMATS:
        raise JobFailed(f"{path}: the plot can be {', '.join(FORMATS)}")
    if not any(each.times for each in series):
        raise JobFailed(f"{', '.join(each.name for each in series)}: there is no batch to plot yet")
    try:
        from matplotlib import dates
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise JobFailed("plots need matplotlib: pip install matplotlib") from error
    figure = Figure(figsize=(9, 6), layout="constrained")
    FigureCanvasAgg(figure)
    rate, lag = figure.subplots(2, 1, sharex=True)
    for each in series:
        rate.plot(each.times, each.rates, marker=".", label=each.name)
        lag.plot(each.lag_times, each.lags, marker=".", label=each.name)
    rate.set_ylabel("records/s")
    lag.set_ylabel("lag (records)")
    lag.set_xlabel("time (UTC)")
    for axes in (rate, lag):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    clock: Any = dates
    locator = clock.AutoDateLocator()
    lag.xaxis.set_major_locator(locator)
    lag.xaxis.set_major_formatter(clock.ConciseDateFormatter(locator))
    rate.set_title(title or "throughput and lag")
    if len(series) > 1:
        rate.legend()
    figure.savefig(path)


def plot_files(files: Iterable[Path], path: Path) -> None:
    draw([read(file) for file in files], path)
