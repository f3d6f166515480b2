"""Partitions get their first leader, and another one when they need it."""

from __future__ import annotations

from dataclasses import replace

from replication.controller.assignment import Assignment
from replication.controller.cluster_state import TopicPartition
from replication.controller.elections import Strategy
from replication.controller.states import PartitionState
from replication.metadata import paths, payloads
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.store import Put
from tests.unit.replication.controller.desk import T0, T1, Desk, story


def born(at: Desk, *replicas: tuple[int, ...]) -> list[TopicPartition]:
    """A topic `u` of which nothing but the node exists."""
    at.state.add_topic("u", b"u" * 16, {i: Assignment(r) for i, r in enumerate(replicas)})
    partitions = at.state.partitions_of("u")
    at.reign.partitions.mark(partitions, PartitionState.NEW)
    return partitions


@story
async def test_the_first_leader_is_the_first_live_replica_and_all_live_ones_are_in_sync():
    at = await Desk.with_topics(brokers=(1, 2, 3))
    await at.add_topic("u", [(9, 2, 1), (3,)])
    partitions = born(at, (9, 2, 1), (3,))
    assert await at.reign.partitions.elect(partitions, Strategy.OFFLINE) == []
    assert at.leads("u", 0) == (2, 0, (2, 1))
    assert at.leads("u", 1) == (3, 0, (3,))
    assert at.told() == [
        "LISR 1 u-0 leader 2/0 isr 2,1 new",
        "LISR 2 u-0 leader 2/0 isr 2,1 new",
        "LISR 3 u-1 leader 3/0 isr 3 new",
        "UMR 1 u-0 leader 2/0, u-1 leader 3/0",
        "UMR 2 u-0 leader 2/0, u-1 leader 3/0",
        "UMR 3 u-0 leader 2/0, u-1 leader 3/0",
    ]
    assert at.state.partition_states[partitions[0]] is PartitionState.ONLINE


@story
async def test_a_new_partition_without_a_live_replica_waits_for_one():
    at = await Desk.with_topics()
    await at.add_topic("u", [(8, 9)])
    (partition,) = born(at, (8, 9))
    await at.reign.partitions.elect([partition], Strategy.OFFLINE)
    assert at.state.partition_states[partition] is PartitionState.NEW
    assert not at.exists(paths.partition_state("u", 0))
    await at.comes(9)
    assert at.leads("u", 0) == (9, 0, (9,))


@story
async def test_an_offline_leader_is_replaced_under_the_next_epoch():
    at = await Desk.with_topics({"t": [(1, 2, 3)]})
    del at.state.brokers[1]
    at.reign.partitions.mark([T0], PartitionState.OFFLINE)
    assert await at.reign.partitions.bring_online() == [T0]
    assert at.leads() == (2, 1, (2, 3))
    assert at.told() == [
        "LISR 2 t-0 leader 2/1 isr 2,3",
        "LISR 3 t-0 leader 2/1 isr 2,3",
        "UMR 2 t-0 leader 2/1",
        "UMR 3 t-0 leader 2/1",
    ]


@story
async def test_an_election_goes_on_from_what_somebody_else_has_written():
    at = await Desk.with_topics({"t": [(1, 2, 3)]})
    path = paths.partition_state("t", 0)
    theirs = replace(at.stored(), isr=(1, 3))
    await at.store.multi([Put(path, payloads.encode_state(theirs))])
    assert await at.reign.partitions.elect([T0], Strategy.OFFLINE) == [T0]
    assert at.leads() == (1, 1, (1, 3))


@story
async def test_a_state_of_a_later_controller_is_left_alone():
    at = await Desk.with_topics({"t": [(1, 2, 3)]})
    path = paths.partition_state("t", 0)
    theirs = replace(at.stored(), controller_epoch=2, leader=3)
    await at.store.multi([Put(path, payloads.encode_state(theirs))])
    assert await at.reign.partitions.elect([T0], Strategy.OFFLINE) == []
    assert at.stored() == theirs
    assert at.told() == []


@story
async def test_nobody_in_sync_means_no_leader_until_the_topic_allows_it():
    at = await Desk.with_topics({"t": [(1, 2), (2, 1)]})
    await at.goes(1)
    await at.goes(2)
    assert at.leads() == (-1, 2, (2,))
    await at.comes(1)
    assert at.leads() == (-1, 2, (2,))
    config = ConfigResource(ConfigType.TOPIC, "t").path
    await at.store.create(config, payloads.encode_config({"unclean.leader.election.enable": "true"}))
    assert await at.reign.partitions.bring_online("other") == []
    assert await at.reign.partitions.bring_online("t") == [T0, T1]
    assert at.leads() == (1, 3, (1,))
    assert at.stored().recovering


@story
async def test_the_brokers_default_counts_where_the_topic_says_nothing():
    at = await Desk.with_topics({"t": [(1, 2)]}, unclean=True)
    await at.goes(1)
    assert at.leads() == (2, 1, (2,))
    assert not at.stored().recovering
    await at.goes(2)
    await at.comes(1)
    assert at.leads() == (1, 3, (1,))
    assert at.stored().recovering


@story
async def test_an_unclean_election_can_be_forced():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.goes(1)
    await at.goes(2)
    await at.comes(1)
    assert await at.reign.partitions.elect([T0], Strategy.OFFLINE, unclean=True) == [T0]
    assert at.leads() == (1, 3, (1,))


@story
async def test_topics_that_go_get_no_leaders():
    at = await Desk.with_topics({"t": [(1, 2)]})
    at.state.deleting["t"] = None
    at.reign.partitions.mark([T0], PartitionState.OFFLINE)
    assert await at.reign.partitions.bring_online() == []


@story
async def test_illegal_moves_are_refused():
    at = await Desk.with_topics({"t": [(1, 2)]})
    at.reign.partitions.mark([T0], PartitionState.NEW)
    assert at.state.partition_states[T0] is PartitionState.ONLINE
    unknown = TopicPartition("x", 0)
    assert await at.reign.partitions.elect([unknown], Strategy.OFFLINE) == []
    assert at.told() == []
