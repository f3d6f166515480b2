"""Controlled shutdown, asked for."""

from __future__ import annotations

import asyncio

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient
from replication.cluster.departure import DepartureSettings, depart
from tests.unit.replication.cluster.asking import Asked

R = m.ControlledShutdownResponse
LED = R(remaining_partitions=[R.RemainingPartition(topic_name="t", partition_index=0)])


def departed(*answers, attempts=3):
    asked = Asked(*answers)
    client = ControllerClient(asked, lambda: asked.controller)
    done = asyncio.run(depart(client, 3, lambda: 44, DepartureSettings(attempts, 0)))
    assert all((each.broker_id, each.broker_epoch) == (3, 44) for each in asked.requests)
    return done, len(asked.requests)


def test_it_is_over_when_nothing_is_led_here_any_more():
    assert departed(R()) == (True, 1)
    assert departed(LED, R()) == (True, 2)


def test_a_controller_that_moves_or_refuses_is_asked_again():
    assert departed(ChannelLost("gone"), R(error_code=ErrorCode.NOT_CONTROLLER), R()) == (True, 3)


def test_after_some_attempts_the_broker_stops_all_the_same():
    assert departed(LED, LED, LED, R()) == (False, 3)
    assert departed(ChannelLost("gone"), attempts=1) == (False, 1)
