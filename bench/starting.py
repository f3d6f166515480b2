"""How long a broker takes from the start of its process until all that it holds is served."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench import brokers as made
from bench.brokers import STALL_LINE, Broker
from bench.rounds import Row, Sample, measure
from ottla.client import ClientError

LOOK_AGAIN_S = 0.01


def start_until_served(
    broker: Broker, missing: list[Any], look: Callable[[list[Any]], None], limit_s: float
) -> float:
    """Seconds until nothing is missing any more. `look` takes out of the list what is served, from the end,
    and raises ClientError or OSError while the broker cannot be asked. Raises RuntimeError where the start
    fails or takes longer than `limit_s`.
    """
    process = broker.process
    assert process is not None, "only a broker that the bench has started can be started again"
    problems: list[RuntimeError] = []

    def start() -> None:
        try:
            process.start()
        except RuntimeError as error:
            problems.append(error)

    starter = threading.Thread(target=start)
    begin = time.perf_counter()
    starter.start()
    while missing:
        if problems:
            raise problems[0]
        if time.perf_counter() - begin > limit_s:
            raise RuntimeError(f"{len(missing)} were not served within {limit_s:g} s: {missing[:5]}")
        try:
            look(missing)
        except (ClientError, OSError):
            time.sleep(LOOK_AGAIN_S)
    took = time.perf_counter() - begin
    starter.join()
    return took


def second_life(
    kind: str, fill: Callable[[Broker], list[Any]], look: Callable[[Broker, list[Any]], None], limit_s: float
) -> tuple[float, int | None]:
    """Fill a new broker, stop it and start it until all is served that `fill` returned; `look` as above.

    Returns the seconds, and the longest stall of its loop in that life in ms where the broker tells one.
    """
    broker = made.make(kind)
    process = broker.process
    assert process is not None
    try:
        process.start()
        missing = fill(broker)
        process.stop()
        seconds = start_until_served(broker, missing, lambda left: look(broker, left), limit_s)
        process.stop()
        told = re.findall(STALL_LINE, process.output_path.read_text(errors="replace"))
        return seconds, int(told[-1]) if told else None
    finally:
        process.stop()
        shutil.rmtree(process.directory, ignore_errors=True)


def second_lives(
    row: Row,
    brokers: Sequence[Broker],
    fill: Callable[[Broker], list[Any]],
    look: Callable[[Broker, list[Any]], None],
    limit_s: float,
) -> Iterator[Row]:
    """The row of one second life of each kind, and one of how long that held up the loop, which is ours only.
    Each side is a broker of its own, so one that somebody else started is left out.
    """
    stalls: dict[str, list[Sample]] = {}

    def live(kind: str) -> Callable[[], Sample]:
        def run() -> Sample:
            seconds, stall_ms = second_life(kind, fill, look, limit_s)
            if stall_ms is not None:
                stalls.setdefault(kind, []).append(Sample(stall_ms))
            return Sample(seconds)

        return run

    kinds = [broker.name for broker in brokers if broker.process is not None]
    yield measure(row, {kind: live(kind) for kind in kinds}, rounds=1)
    if stalls:
        yield Row(row.section, "the loop held up at most", "ms", lower_is_better=True, samples=stalls)
