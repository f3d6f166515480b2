"""Replicas change their state, and their brokers are told."""

from __future__ import annotations

from dataclasses import replace

from replication.controller.cluster_state import Replica, TopicPartition
from replication.controller.states import ReplicaState
from replication.metadata import paths, payloads
from replication.metadata.store import Put
from tests.unit.replication.controller.desk import T0, Desk, story


@story
async def test_a_follower_that_goes_offline_is_stopped_and_leaves_the_set_in_sync():
    at = await Desk.with_topics({"t": [(1, 2, 3)]})
    await at.reign.replicas.move([at.replica(2)], ReplicaState.OFFLINE)
    assert at.leads() == (1, 1, (1, 3))
    assert at.told() == [
        "LISR 1 t-0 leader 1/1 isr 1,3",
        "LISR 3 t-0 leader 1/1 isr 1,3",
        "UMR 1 t-0 leader 1/1",
        "UMR 2 t-0 leader 1/1",
        "UMR 3 t-0 leader 1/1",
        "SR 2 t-0 0",
    ]
    assert at.state.replica_state(at.replica(2)) is ReplicaState.OFFLINE


@story
async def test_a_leader_that_goes_offline_leaves_nobody_leading():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.reign.replicas.move([at.replica(1)], ReplicaState.OFFLINE)
    assert at.leads() == (-1, 1, (2,))


@story
async def test_the_last_member_in_sync_stays_it_and_is_not_written_twice():
    at = await Desk.with_topics({"t": [(1,)]})
    await at.reign.replicas.move([at.replica(1)], ReplicaState.OFFLINE)
    assert at.leads() == (-1, 1, (1,))
    await at.reign.replicas.move([at.replica(1)], ReplicaState.OFFLINE)
    assert at.leads() == (-1, 1, (1,))


@story
async def test_a_conflict_is_read_and_tried_again():
    at = await Desk.with_topics({"t": [(1, 2, 3)]})
    theirs = replace(at.stored(), isr=(1, 2))
    await at.store.multi([Put(paths.partition_state("t", 0), payloads.encode_state(theirs))])
    await at.reign.replicas.move([at.replica(2)], ReplicaState.OFFLINE)
    assert at.leads() == (1, 1, (1,))


@story
async def test_online_tells_the_replica_what_holds():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.reign.replicas.move([at.replica(2)], ReplicaState.ONLINE)
    assert at.told()[0] == "LISR 2 t-0 leader 1/0 isr 1,2"


@story
async def test_a_new_replica_is_told_that_it_is_new_unless_it_leads():
    at = await Desk.with_topics({"t": [(1, 2)]})
    for replica in (at.replica(3), at.replica(1)):
        at.state.replica_states.pop(replica, None)
    await at.reign.replicas.move([at.replica(3), at.replica(1)], ReplicaState.NEW)
    assert at.told()[0] == "LISR 3 t-0 leader 1/0 isr 1,2 new"
    assert at.state.replica_state(at.replica(3)) is ReplicaState.NEW
    assert at.state.replica_state(at.replica(1)) is ReplicaState.NON_EXISTENT


@story
async def test_a_replica_is_deleted_and_leaves_the_assignment():
    at = await Desk.with_topics({"t": [(1, 2)]})
    for state in (ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED):
        await at.reign.replicas.move([at.replica(2)], state)
    assert at.told()[-1] == "SR 2 t-0 1 delete"
    for state in (ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT):
        await at.reign.replicas.move([at.replica(2)], state)
    assert at.state.assignment(T0).replicas == (1,)
    assert at.state.replica_state(at.replica(2)) is ReplicaState.NON_EXISTENT


@story
async def test_illegal_moves_are_refused():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.reign.replicas.move([at.replica(2)], ReplicaState.DELETION_STARTED)
    await at.reign.replicas.move([Replica(TopicPartition("x", 0), 1)], ReplicaState.ONLINE)
    assert at.state.replica_state(at.replica(2)) is ReplicaState.ONLINE
    assert at.told() == []


@story
async def test_a_partition_without_a_leader_goes_offline_without_a_write():
    at = await Desk.with_topics({"t": [(1, 2)]})
    version = at.tree.nodes[paths.partition_state("t", 0)].version
    del at.state.leaderships[T0]
    await at.reign.replicas.move([at.replica(2)], ReplicaState.OFFLINE)
    assert at.told() == ["UMR 1", "UMR 2", "UMR 3", "SR 2 t-0 -1"]
    assert at.tree.nodes[paths.partition_state("t", 0)].version == version


@story
async def test_at_the_start_live_replicas_are_told_and_dead_ones_leave_the_sets():
    at = await Desk.with_topics({"t": [(9, 1)], "u": [(1, 2)]}, begin=False)
    await at.reign.begin()
    assert at.leads("t") == (1, 2, (1,))
    assert at.leads("u") == (1, 0, (1, 2))
    assert at.state.replica_state(at.replica(9)) is ReplicaState.OFFLINE
    assert "LISR 2 u-0 leader 1/0 isr 1,2" in at.told()
