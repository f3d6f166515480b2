"""The two times of the production clock."""

import asyncio
import time

from runtime.clock import SystemClock


def test_system_clock_tells_wall_time_in_ms_and_the_loops_own_monotonic_time():
    loop = asyncio.new_event_loop()
    clock = SystemClock(loop)
    before = int(time.time() * 1000)
    assert before <= clock.now_ms() <= int(time.time() * 1000) + 1
    first = clock.monotonic()
    assert 0 <= loop.time() - first < 1
    assert clock.monotonic() >= first
    loop.close()
