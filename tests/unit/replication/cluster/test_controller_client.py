"""One connection to whoever is the controller."""

from __future__ import annotations

import asyncio

import pytest

from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient
from tests.unit.replication.cluster.asking import Asked


def test_one_connection_serves_until_another_broker_is_the_controller():
    async def story():
        asked = Asked("a", "b", "c")
        client = ControllerClient(asked, lambda: asked.controller)
        assert [await client.ask(1), await client.ask(2)] == ["a", "b"]
        asked.controller = 7
        assert await client.ask(3) == "c"
        assert (asked.dialled, asked.closed) == ([(9, "controller"), (7, "controller")], 1)
        await client.close()
        assert asked.closed == 2

    asyncio.run(story())


def test_without_a_controller_nobody_is_asked():
    async def story():
        asked = Asked("a")
        asked.controller = -1
        client = ControllerClient(asked, lambda: asked.controller)
        with pytest.raises(ChannelLost, match="no controller"):
            await client.ask(1)
        assert asked.dialled == []

    asyncio.run(story())
