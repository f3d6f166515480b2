"""How long a broker takes from the start of its process until all that it holds is served."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from bench.brokers import Broker
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
