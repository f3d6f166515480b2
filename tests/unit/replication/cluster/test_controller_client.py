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
        client = ControllerClient(asked, lambda: asked.controller, "topics")
        assert [await client.ask(1), await client.ask(2)] == ["a", "b"]
        asked.controller = 7
        assert await client.ask(3) == "c"
        assert (asked.dialled, asked.closed) == ([(9, "topics"), (7, "topics")], 1)
        await client.close()
        assert asked.closed == 2

    asyncio.run(story())


def test_without_a_controller_nobody_is_asked():
    async def story():
        asked = Asked("a")
        asked.controller = -1
        client = ControllerClient(asked, lambda: asked.controller, "topics")
        with pytest.raises(ChannelLost, match="no controller"):
            await client.ask(1)
        assert asked.dialled == []

    asyncio.run(story())


class Hanging:
    """A line whose answer never comes."""

    def __init__(self):
        self.asked, self.aborted, self.closed = asyncio.Event(), asyncio.Event(), False

    def to(self, broker_id, purpose):
        return self

    async def ask(self, request, version=None):
        self.asked.set()
        await self.aborted.wait()
        raise ChannelLost("dropped")

    def abort(self):
        self.aborted.set()

    async def close(self):
        self.closed = True


def test_closing_waits_for_no_answer_and_nobody_asks_afterwards():
    async def story():
        line = Hanging()
        client = ControllerClient(line, lambda: 9, "topics")
        asking = asyncio.ensure_future(client.ask(1))
        await line.asked.wait()
        await client.close()
        with pytest.raises(ChannelLost, match="dropped"):
            await asking
        assert line.closed
        with pytest.raises(ChannelLost, match="stopping"):
            await client.ask(2)

    asyncio.run(story())
