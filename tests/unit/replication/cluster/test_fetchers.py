"""Which fetcher copies what, and how long one lives."""

from __future__ import annotations

import asyncio

import pytest

from replication.cluster.channel import ChannelLost
from replication.cluster.fetchers import Fetchers, fetcher_id
from runtime.tasks import TaskScope
from tests.unit.replication.cluster.stage import Stage


@pytest.mark.parametrize(
    ("topic", "index", "count", "number"),
    [
        ("t", 0, 1, 0),
        ("test", 0, 4, abs(31 * 3556498) % 4),
        ("my-group", 3, 7, 1028111525 % 7),  # 31 * -1906497762 + 3 wraps to 1028111525
        ("polygenelubricants", 0, 7, 0),  # 31 * -2**31 wraps to -2**31, which has no positive value
    ],
)
def test_the_hash_is_kafkas(topic, index, count, number):
    assert fetcher_id(topic, index, count) == number


class Silent:
    """A channel that answers nothing until it is dropped."""

    def __init__(self):
        self.closed, self.dropped = False, asyncio.Event()

    async def ask(self, request, version=None):
        await self.dropped.wait()
        raise ChannelLost("dropped")

    def abort(self):
        self.dropped.set()

    async def close(self):
        self.closed = True


class Dialler:
    def __init__(self):
        self.made = {}

    def to(self, broker_id, purpose):
        channel = self.made[broker_id, purpose] = Silent()
        return channel


def on_fetchers(story, count=1, partitions=4, size=3):
    async def main():
        stage = Stage(size, partitions)
        node = stage[size]
        dialler = Dialler()
        scope = TaskScope(asyncio.get_running_loop(), "test")
        settings = type(node.fetching)(node.fetching.identity, fetchers_per_leader=count)
        fetchers = Fetchers(dialler, settings, node.world, scope)
        node.replicas.fetching = fetchers
        await story(stage, node, fetchers, dialler)
        await asyncio.sleep(0)
        fetchers.close()
        await scope.aclose()
        assert all(channel.closed for channel in dialler.made.values())

    asyncio.run(main())


def test_partitions_are_spread_over_leaders_and_connections():
    async def story(stage, node, fetchers, dialler):
        for index in range(4):
            stage.lead(1 + index % 2, index=index, is_new=True)
        numbers = [fetcher_id("t", index, 2) for index in range(4)]
        wanted = {(1 + index % 2, f"fetcher-{number}") for index, number in enumerate(numbers)}
        assert set(dialler.made) == wanted
        assert fetchers.of(node.partition(0)).leader_id == 1

    on_fetchers(story, count=2)


def test_a_fetcher_ends_with_its_last_partition():
    async def story(stage, node, fetchers, dialler):
        stage.lead(1, index=0, is_new=True)
        stage.lead(1, index=1, is_new=True)
        await asyncio.sleep(0)
        stage.lead(2, index=0)
        assert len(fetchers) == 2
        stage.lead(3, index=1)
        assert len(fetchers) == 1
        for _ in range(5):
            await asyncio.sleep(0)
        assert dialler.made[1, "fetcher-0"].closed
        assert fetchers.of(node.partition(1)) is None

    on_fetchers(story)


def test_the_same_leader_under_a_newer_epoch_keeps_the_fetcher():
    async def story(stage, node, fetchers, dialler):
        stage.lead(1, is_new=True)
        fetcher = fetchers.of(node.partition())
        stage.lead(1)
        assert fetchers.of(node.partition()) is fetcher
        assert fetcher.get(("t", 0)).leader_epoch == 1

    on_fetchers(story)


def test_another_number_of_fetchers_moves_partitions_at_once():
    async def story(stage, node, fetchers, dialler):
        for index in range(4):
            stage.lead(1, index=index, is_new=True)
        failed = node.partition(3)
        fetchers.of(failed).remove(("t", 3))
        fetchers.of(failed).failed[("t", 3)] = None
        assert len(fetchers) == 1
        fetchers.resize(3)
        for index in range(3):
            followed = fetchers.of(node.partition(index)).get(("t", index))
            assert followed.partition is node.partition(index)
        wanted = {f"fetcher-{fetcher_id('t', index, 3)}" for index in range(3)} | {"fetcher-0"}
        assert {purpose for _, purpose in dialler.made} == wanted
        assert fetchers.failed == [("t", 3)]
        fetchers.resize(1)
        stage.lead(1, index=3)
        assert len(fetchers) == 1
        assert all(fetchers.of(node.partition(index)).get(("t", index)) for index in range(4))

    on_fetchers(story)


def test_a_partition_that_failed_is_known_until_it_is_forgotten():
    async def story(stage, node, fetchers, dialler):
        stage.lead(1, is_new=True)
        fetcher = fetchers.of(node.partition())
        fetcher.remove(("t", 0))
        fetcher.failed[("t", 0)] = None
        assert fetchers.failed == [("t", 0)]
        fetchers.forget(node.partition())
        assert fetchers.failed == []
        assert len(fetchers) == 0

    on_fetchers(story)
