"""Controlled shutdown, asked for."""

from __future__ import annotations

import asyncio

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient
from replication.cluster.departure import STAY_S, DepartureSettings, depart
from tests.unit.replication.cluster.asking import Asked

R = m.ControlledShutdownResponse
LED = R(remaining_partitions=[R.RemainingPartition(topic_name="t", partition_index=0)])


def departed(*answers, attempts=3, backoff_ms=0, is_last=lambda: False, leads=lambda: False):
    asked = Asked(*answers)
    client = ControllerClient(asked, lambda: asked.controller, "topics")
    settings = DepartureSettings(attempts, backoff_ms)
    done = asyncio.run(depart(client, 3, lambda: 44, settings, is_last, leads))
    assert all((each.broker_id, each.broker_epoch) == (3, 44) for each in asked.requests)
    return done, len(asked.requests)


def test_it_is_over_when_nothing_is_led_here_any_more():
    assert departed(R()) == (True, 1)
    assert departed(LED, R()) == (True, 2)


def test_the_orders_of_the_controller_are_waited_for_and_not_for_ever():
    looks = [True, True, False]
    assert departed(R(), leads=lambda: looks.pop(0)) == (True, 1)
    assert looks == []
    assert departed(R(), leads=lambda: True) == (True, 1)


def test_a_broker_that_led_stays_while_its_producers_find_the_new_leader(monkeypatch):
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    looks = [True, False]
    assert departed(R(), leads=lambda: looks.pop(0)) == (True, 1)
    assert slept == [STAY_S]
    assert departed(R()) == (True, 1)
    assert slept == [STAY_S]


def test_a_controller_that_moves_or_refuses_is_asked_again():
    assert departed(ChannelLost("gone"), R(error_code=ErrorCode.NOT_CONTROLLER), R()) == (True, 3)


def test_after_some_attempts_the_broker_stops_all_the_same():
    assert departed(LED, LED, LED, R()) == (False, 3)
    assert departed(ChannelLost("gone"), attempts=1) == (False, 1)


def test_a_broker_without_others_asks_nobody():
    assert departed(is_last=lambda: True) == (False, 0)


def test_the_last_one_of_those_that_stop_together_does_not_wait_out_its_pause():
    looks = iter([False, False, False, True, True])
    assert departed(LED, backoff_ms=3_600_000, is_last=lambda: next(looks)) == (False, 1)


def test_a_controller_that_hangs_does_not_keep_a_broker():
    async def story():
        asked = Asked()

        async def hang(request, version=None):
            await asyncio.get_running_loop().create_future()

        asked.ask = hang
        client = ControllerClient(asked, lambda: asked.controller, "controlled shutdown")
        settings = DepartureSettings(limit_s=0.01)
        return await depart(client, 3, lambda: 44, settings, lambda: False, lambda: False)

    assert not asyncio.run(story())
