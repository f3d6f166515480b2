"""Looking for followers that lag."""

from __future__ import annotations

import asyncio

from replication.cluster.isr_expiry import expire, shrink_all
from tests.unit.replication.cluster import Parked
from tests.unit.replication.cluster.stage import run, until
from tests.unit.replication.leading import LAG_MS, Led


def test_a_look_proposes_to_drop_who_lags_everywhere():
    lags, alone, fine = Led(isr=(1, 2), replicas=(1, 2)), Led(isr=(1,), replicas=(1,)), Led()
    lags.produce()
    for led in (lags, alone, fine):
        led.cluster.now_ms += LAG_MS + 1
    fine.fetch(2, 0)
    fine.fetch(3, 0)
    partitions = [led.partition for led in (lags, alone, fine)]
    assert run(shrink_all(lambda: partitions)) == 1
    assert [change.isr for change in lags.cluster.proposals] == [(1,)]
    assert fine.cluster.proposals == []


def test_a_follower_that_was_about_to_join_and_lags_holds_nobody_up():
    led, waiting = Led(isr=(1,)), Parked()
    led.produce(3)
    led.cluster.dead = [2]
    led.fetch(2, 3)  # it is not known yet as alive, and does not join
    led.cluster.dead = []
    led.produce(2)
    led.partition.await_commit(waiting, 4)
    run(shrink_all(lambda: [led.partition]))
    assert (led.mark, waiting.woken) == (3, 0)
    led.cluster.now_ms += LAG_MS + 1
    run(shrink_all(lambda: [led.partition]))
    assert (led.mark, waiting.woken) == (5, 1)


def test_it_looks_again_and_again():
    async def main():
        looks = []

        def partitions():
            looks.append(1)
            return []

        task = asyncio.get_running_loop().create_task(expire(partitions, 0))
        await until(lambda: len(looks) >= 3)
        task.cancel()

    asyncio.run(main())
