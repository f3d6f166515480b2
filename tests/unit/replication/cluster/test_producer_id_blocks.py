"""Blocks of producer ids from the controller."""

from __future__ import annotations

import asyncio

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster import producer_id_blocks
from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient
from replication.cluster.producer_id_blocks import ProducerIdBlocks
from replication.controller.outcomes import NoBlock
from tests.unit.replication.cluster.asking import Asked

R = m.AllocateProducerIdsResponse


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(producer_id_blocks, "RETRY_S", 0)


def blocks(*answers, timeout_s=5):
    asked = Asked(*answers)
    client = ControllerClient(asked, lambda: asked.controller, "topics")
    return asked, ProducerIdBlocks(client, 3, lambda: 44, timeout_s)


def test_a_block_is_what_the_controller_gives():
    asked, made = blocks(R(producer_id_start=5000, producer_id_len=1000))
    assert asyncio.run(made.allocate()) == (5000, 1000)
    assert (asked.requests[0].broker_id, asked.requests[0].broker_epoch) == (3, 44)


def test_it_is_asked_for_until_there_is_a_controller():
    refused = [R(error_code=error) for error in (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH)]
    _, made = blocks(ChannelLost("gone"), *refused, R(producer_id_start=0, producer_id_len=1000))
    assert asyncio.run(made.allocate()) == (0, 1000)


def test_but_not_for_ever():
    _, made = blocks(timeout_s=0.05)
    with pytest.raises(NoBlock):
        asyncio.run(made.allocate())
