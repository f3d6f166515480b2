"""What AlterPartitionReassignments refuses and begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.errors import ErrorCode
from replication.controller import reassignment_requests
from replication.controller.assignment import Assignment
from replication.controller.cluster_state import TopicPartition
from replication.metadata import controller_payloads, paths
from replication.metadata.store import Create
from tests.unit.replication.controller.desk import T0, T1, Desk, story

ALL = (1, 2, 3, 4)


async def desk() -> Desk:
    return await Desk.with_topics({"t": [(1, 2), (1, 2)], "u": [(1,)]}, brokers=ALL)


async def one(at, target, partition=T0, allow=True):
    outcomes = await reassignment_requests.alter(at.reign, {partition: target}, allow_factor_change=allow)
    return outcomes[partition]


@story
async def test_moves_begin_and_are_listed():
    at = await desk()
    assert await one(at, (3, 4)) == (ErrorCode.NONE, None)
    moving = {T0: Assignment((3, 4, 1, 2), (3, 4), (1, 2))}
    assert reassignment_requests.under_way(at.state, None) == moving
    assert reassignment_requests.under_way(at.state, [T1, T0, TopicPartition("x", 0)]) == moving
    assert reassignment_requests.under_way(at.state, [T1]) == {}


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ((), "an empty replica list."),
        ((1, -2), "an invalid broker id -2."),
        ((3, 3), "the broker 3 more than once."),
        ((1, 9), "broker 9, but no such broker is registered."),
    ],
)
def test_bad_targets_are_refused(target, what):
    @story
    async def run():
        at = await desk()
        error, message = await one(at, target)
        assert error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert message == f"The manual partition assignment includes {what}"
        assert at.state.reassigning == {}

    run()


@story
async def test_a_broker_that_is_down_may_stay_and_not_be_added():
    at = await desk()
    await at.goes(2)
    assert (await one(at, (2, 3)))[0] is ErrorCode.NONE
    await at.goes(4)
    assert (await one(at, (4,), T1))[0] is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@story
async def test_there_must_be_something_to_cancel():
    at = await desk()
    error = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert await one(at, None) == (error, error.message)
    await one(at, (3, 4))
    assert await one(at, None) == (ErrorCode.NONE, None)
    assert at.topic().assignment[0] == (1, 2)


@story
async def test_unknown_and_deleted_partitions():
    at = await desk()
    at.state.deleting["u"] = None
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await one(at, (1,), TopicPartition("x", 0)) == (unknown, "Unable to find a topic named x.")
    assert await one(at, (1,), TopicPartition("t", 9)) == (unknown, "Unable to find partition t:9.")
    assert (await one(at, (2,), TopicPartition("u", 0)))[0] is unknown


@story
async def test_the_replication_factor_can_be_kept_by_the_client():
    at = await desk()
    assert await one(at, (3,), allow=False) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 2 to 1",
    )
    assert (await one(at, (3, 4), allow=False))[0] is ErrorCode.NONE


@story
async def test_a_move_whose_new_replica_alone_is_in_sync_cannot_be_undone():
    at = await desk()
    u0 = TopicPartition("u", 0)
    await one(at, (3, 4), u0)
    await at.in_sync(1, 3, partition=u0)
    await at.goes(1)
    assert at.leads("u", 0)[2] == (3,)
    error, message = await one(at, None, u0)
    assert error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message == (
        "Unable to revert partition assignment for u:0 because it would require an unclean leader election."
    )
    assert (await one(at, (2,), u0))[0] is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert at.leads("u", 0)[2] == (3,)


@story
async def test_the_later_request_takes_the_place_of_a_tools():
    at = await desk()
    value = controller_payloads.encode_reassignment({T0: (3,), T1: (3,)})
    await at.store.multi([Create(paths.REASSIGN_PARTITIONS, value)])
    await one(at, (4, 1))
    assert await at.reign.legacy.read() == {T1: (3,)}


@story
async def test_a_topic_that_vanished_meanwhile_is_unknown():
    at = await desk()
    nodes = sorted((p for p in at.tree.nodes if p.startswith(paths.topic("t"))), reverse=True)
    for path in nodes:
        await at.store.delete(path)
    assert await one(at, (3, 4)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)


@story
async def test_a_broker_that_is_cordoned_may_stay_and_not_be_added():
    at = await desk()
    at.state.brokers[2] = replace(at.state.brokers[2], cordoned=True)
    at.state.brokers[3] = replace(at.state.brokers[3], cordoned=True)
    assert await one(at, (2, 4)) == (ErrorCode.NONE, None)
    assert await one(at, (2, 3)) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "The manual partition assignment includes broker 3, but all its log directories are cordoned.",
    )
