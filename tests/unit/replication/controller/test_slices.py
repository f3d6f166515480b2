"""Long loops leave the event loop to others in between."""

from __future__ import annotations

import asyncio

import pytest

from replication.controller.slices import slices


def test_everything_comes_in_order_and_others_run_in_between():
    async def story():
        passes = []

        async def other():
            while True:
                passes.append(None)
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        found = [part async for part in slices(range(25), 10)]
        assert found == [list(range(10)), list(range(10, 20)), list(range(20, 25))]
        assert len(passes) == 2
        assert [part async for part in slices([], 10)] == []
        task.cancel()

    asyncio.run(story())


def test_what_fits_at_once_waits_for_nobody():
    step = slices(range(3), 10).asend(None)
    with pytest.raises(StopIteration) as found:
        step.send(None)
    assert found.value.value == [0, 1, 2]
