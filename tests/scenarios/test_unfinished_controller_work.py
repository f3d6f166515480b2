"""A controller's host dies at any write while it makes, deletes or moves a topic; the next one ends the work.

Each write is tried twice: lost with the host, and stored although the host did not live to know. Of a topic
that was made, for example, the node can be there and no partition's state.
"""

from __future__ import annotations

import asyncio

import pytest

from replication.controller.cluster_state import TopicPartition
from replication.controller.outcomes import NewTopic, TopicToDelete
from replication.metadata import paths
from replication.metadata.configs import ConfigResource, ConfigType
from tests.support.virtual_loop import run
from tests.unit.replication.controller.life import Life

T0 = TopicPartition("t", 0)
CONFIG = ConfigResource(ConfigType.TOPIC, "t").path


async def make(host, brokers) -> None:
    """With an override, so that there is a node for its configuration, too."""
    first, second, _ = brokers
    topic = NewTopic(
        "t", assignments=((0, (first, second)), (1, (second, first))), configs=(("good.a", "1"),)
    )
    await host.admin.create_topics([topic], timeout_ms=1000)


async def delete(host, brokers) -> None:
    await host.admin.delete_topics([TopicToDelete("t")], timeout_ms=1000)


async def move(host, brokers) -> None:
    await host.admin.alter_reassignments({T0: (brokers[2],)})


def interrupted(work, writes: int, stored: bool, check) -> None:
    """Have the controller's host die with the write after so many others, and `check(world, brokers)` in the
    end: `brokers` have the topic's replicas, or are to have them, and are not the controller.
    """
    life = Life(writes)
    world = life.world

    async def story() -> None:
        await world.start()
        host = await world.active()
        brokers = [number for number in world.hosts if number != host.id]
        if work is not make:
            await make(host, brokers)
            await asyncio.sleep(1)
        host.store.writes_until_crash, host.store.crash_applies = writes, stored
        asked = asyncio.get_running_loop().create_task(work(host, brokers))
        await asyncio.wait_for(host.store.crashed.wait(), 60)
        asked.cancel()
        host.store.writes_until_crash = None
        await host.kill()
        await life.calm_down()
        life.check()  # all that is assigned is led, in sync, hosted, and nothing else is
        for each in world.hosts.values():
            assert each.disk.keys() == each.hosted.keys()
        check(world, brokers)
        await world.stop()

    run(story())


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("writes", [0, 1])
def test_a_topic_whose_node_was_written_gets_leaders(writes, stored):
    def check(world, brokers):
        if writes == 0 and not stored:
            assert paths.topic("t") not in world.tree.nodes
            return
        assert [world.state_of("t", index).leader for index in (0, 1)] == brokers[:2]
        assert CONFIG in world.tree.nodes

    interrupted(make, writes, stored, check)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_of_a_topic_that_was_marked_for_deletion_nothing_is_left(writes, stored):
    """The marker is written first; then go the topic's nodes, its configuration, and the marker."""

    def check(world, brokers):
        is_there = writes == 0 and not stored
        assert (paths.topic("t") in world.tree.nodes) == is_there
        assert (CONFIG in world.tree.nodes) == is_there
        assert f"{paths.DELETE_TOPICS}/t" not in world.tree.nodes

    interrupted(delete, writes, stored, check)


@pytest.mark.parametrize(
    ("writes", "stored"),
    [(writes, stored) for writes in range(7) for stored in (False, True) if (writes, stored) != (6, True)],
)
def test_a_move_whose_target_was_written_ends_at_the_target_and_leaves_no_replica_behind(writes, stored):
    """The target, its epoch, the new replica in sync, its leadership, twice a smaller set in sync, the end.

    With the end stored there is nothing to go on with.
    """

    def check(world, brokers):
        wanted = brokers[:2] if writes == 0 and not stored else brokers[2:]
        assert list(world.topic_of("t").assignment[0]) == wanted

    interrupted(move, writes, stored, check)
