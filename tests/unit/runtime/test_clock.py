"""The times of the production clock."""

import asyncio
import threading
import time

from runtime.clock import SystemClock


def test_system_clock_tells_wall_time_in_ms_and_the_loops_own_monotonic_time():
    loop = asyncio.new_event_loop()
    clock = SystemClock(loop)
    before = int(time.time() * 1000)
    assert before <= clock.now_ms() <= int(time.time() * 1000) + 1
    first = clock.monotonic()
    assert 0 <= loop.time() - first < 60
    assert clock.monotonic() >= first
    loop.close()


def test_processor_time_counts_work_and_not_waiting():
    loop = asyncio.new_event_loop()
    clock = SystemClock(loop)
    loop.close()
    before = clock.worked()
    total = sum(range(1_000_000))
    worked = clock.worked() - before
    assert total
    assert 0 < worked < 10
    before = clock.worked()
    threading.Event().wait(0.05)
    assert clock.worked() - before < 0.05
