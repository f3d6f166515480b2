"""Partitions move to other brokers, step by step; what is interrupted goes on."""

from __future__ import annotations

from contextlib import suppress

import pytest

from replication.controller.assignment import Assignment
from replication.controller.states import ReplicaState
from replication.metadata import controller_payloads, paths
from replication.metadata.store import Create
from tests.unit.replication.controller.desk import T0, Desk, story

ALL = (1, 2, 3, 4, 5, 6)


async def moving(target=(4, 5, 6), replicas=(1, 2, 3), **options) -> Desk:
    at = await Desk.with_topics({"t": [replicas]}, brokers=ALL, **options)
    await at.reign.reassignments.reassign(T0, at.state.assignment(T0).towards(target))
    return at


def assignment(at: Desk):
    topic = at.topic()
    return topic.assignment[0], topic.adding.get(0), topic.removing.get(0)


@story
async def test_the_target_is_stored_then_told_then_started():
    at = await moving()
    assert assignment(at) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert at.leads() == (1, 1, (1, 2, 3))
    told = [line for line in at.told() if line.startswith("LISR")]
    assert told == [
        *(f"LISR {broker} t-0 leader 1/1 isr 1,2,3" for broker in (1, 2, 3)),
        *(f"LISR {broker} t-0 leader 1/1 isr 1,2,3 new" for broker in (4, 5, 6)),
        *(f"LISR {broker} t-0 leader 1/1 isr 1,2,3 new" for broker in (4, 5, 6)),
    ]


@story
async def test_a_target_that_has_caught_up_takes_over_and_the_origin_is_removed():
    at = await moving()
    at.told()
    await at.in_sync(1, 2, 3, 4, 5)
    assert at.told() == []
    await at.in_sync(1, 2, 3, 4, 5, 6)
    assert at.leads() == (4, 5, (4, 5, 6))  # the move of the leader, then one epoch for each that leaves
    assert assignment(at) == ((4, 5, 6), None, None)
    assert at.state.assignment(T0) == Assignment((4, 5, 6))
    told = at.told()
    assert told[:3] == [f"LISR {broker} t-0 leader 4/2 isr 1,2,3,4,5,6" for broker in (4, 5, 6)]
    assert [line for line in told if line.startswith("SR")] == [
        *(f"SR {broker} t-0 2" for broker in (1, 2, 3)),
        *(f"SR {broker} t-0 5 delete" for broker in (1, 2, 3)),
    ]
    assert told[-1] == "UMR 6 t-0 leader 4/5"
    assert at.state.reassigning == {}
    assert at.state.replica_state(at.replica(4)) is ReplicaState.ONLINE
    assert at.state.replica_state(at.replica(1)) is ReplicaState.NON_EXISTENT


@story
async def test_a_leader_that_stays_keeps_leading_under_a_new_epoch():
    at = await moving((1, 4))
    await at.in_sync(1, 2, 3, 4)
    assert at.leads() == (1, 4, (1, 4))
    assert assignment(at) == ((1, 4), None, None)


@pytest.mark.parametrize(
    ("replicas", "target", "isr"), [((1, 2, 3), (2,), None), ((1,), (1, 2, 3), (1, 2, 3))]
)
def test_the_replication_factor_changes(replicas, target, isr):
    @story
    async def run():
        at = await moving(target, replicas)
        if isr is not None:
            assert assignment(at) == ((1, 2, 3), (2, 3), None)
            await at.in_sync(*isr)
        assert assignment(at) == (target, None, None)
        assert at.stored().isr == target
        assert at.stored().leader == target[0]

    run()


@story
async def test_a_cancelled_move_stops_and_removes_what_was_added():
    at = await moving((4, 5))
    await at.in_sync(1, 2, 3, 4)
    at.told()
    current = at.state.assignment(T0)
    await at.reign.reassignments.reassign(T0, current.towards(current.origin))
    assert assignment(at) == ((1, 2, 3), None, None)
    assert at.stored().isr == (1, 2, 3)
    assert at.stored().leader == 1
    stops = [line for line in at.told() if line.endswith("delete")]
    assert [line.split()[1] for line in stops] == ["4", "5"]
    assert at.state.reassigning == {}


@story
async def test_another_target_replaces_the_first_one():
    at = await moving((4, 5))
    at.told()
    await at.reign.reassignments.reassign(T0, at.state.assignment(T0).towards((5, 6)))
    assert assignment(at) == ((5, 6, 1, 2, 3), (5, 6), (1, 2, 3))
    told = at.told()
    assert [line.split()[1] for line in told if line.endswith("delete")] == ["4"]
    await at.in_sync(1, 2, 3, 5, 6)
    assert assignment(at) == ((5, 6), None, None)


@story
async def test_a_target_that_is_down_is_waited_for():
    at = await moving((4, 5))
    await at.goes(5)
    await at.in_sync(1, 2, 3, 4)
    assert assignment(at)[0] == (4, 5, 1, 2, 3)
    await at.comes(5)
    await at.in_sync(1, 2, 3, 4, 5)
    assert assignment(at) == ((4, 5), None, None)


@story
async def test_targets_in_sync_of_which_none_is_alive_do_not_take_over():
    at = await moving((4,), (1,))
    await at.in_sync(1, 4)
    assert assignment(at) == ((4,), None, None)
    at = await moving((4,), (1,))
    await at.goes(1)
    assert at.leads()[0] == -1
    await at.goes(4)
    await at.in_sync(4)
    assert assignment(at) == ((4, 1), (4,), (1,))
    await at.comes(1)
    await at.comes(4)
    assert assignment(at) == ((4,), None, None)
    assert at.leads()[0] == 4


@story
async def test_a_leader_that_dies_meanwhile_is_replaced_and_the_move_goes_on():
    at = await moving((4, 5))
    await at.goes(1)
    assert at.stored().leader == 2
    await at.in_sync(2, 3, 4, 5)
    assert assignment(at) == ((4, 5), None, None)
    assert at.stored().isr == (4, 5)


@pytest.mark.parametrize("writes", range(12))
def test_a_controller_that_dies_after_any_write_leaves_a_move_that_finishes(writes):
    @story
    async def run():
        at = await moving()
        known = at.state.leaderships[T0]
        multi, left = at.store.multi, [writes]

        class Died(Exception):
            """Of the controller's process."""

        async def dying(operations):
            if left[0] == 0:
                raise Died
            left[0] -= 1
            return await multi(operations)

        at.store.multi = dying
        try:
            await at.in_sync(1, 2, 3, 4, 5, 6)
        except Died:
            at.store.multi = multi
            await at.next_epoch()
            if known.partition_epoch == at.state.leaderships[T0].partition_epoch:
                await at.in_sync(1, 2, 3, 4, 5, 6)
        if T0 in at.state.reassigning:
            await at.in_sync(1, 2, 3, 4, 5, 6)
        assert assignment(at) == ((4, 5, 6), None, None)
        assert at.stored().isr == (4, 5, 6)
        assert at.stored().leader == 4
        assert at.state.reassigning == {}
        stopped = {line.split()[1] for line in at.told() if line.endswith("delete")}
        assert stopped == {"1", "2", "3"}

    run()


@pytest.mark.parametrize("writes", range(6))
def test_a_controller_that_dies_while_it_replaces_a_target_leaves_nobody_behind(writes):
    """What is in sync is assigned, after each write."""

    @story
    async def run():
        at = await moving((4, 5))
        await at.in_sync(1, 2, 3, 4)
        multi, left = at.store.multi, [writes]

        class Died(Exception):
            """Of the controller's process."""

        async def dying(operations):
            if left[0] == 0:
                raise Died
            left[0] -= 1
            return await multi(operations)

        at.store.multi = dying
        with suppress(Died):
            await at.reign.reassignments.reassign(T0, at.state.assignment(T0).towards((5, 6)))
        at.store.multi = multi
        assert set(at.stored().isr) <= set(assignment(at)[0])
        await at.next_epoch()
        assert set(at.stored().isr) <= set(assignment(at)[0])
        assert T0 in at.state.reassigning

    run()


@story
async def test_the_first_write_of_a_move_is_enough_for_the_next_controller():
    at = await Desk.with_topics({"t": [(1, 2)]}, brokers=ALL)
    at.reign.reassignments._office.ledger.put_leaderships = None  # dies at the second write
    with pytest.raises(TypeError):
        await at.reign.reassignments.reassign(T0, at.state.assignment(T0).towards((3, 4)))
    await at.next_epoch()
    assert list(at.state.reassigning) == [T0]
    assert "LISR 3 t-0 leader 1/1 isr 1,2 new" in at.told()
    await at.in_sync(1, 2, 3, 4)
    assert assignment(at) == ((3, 4), None, None)


@story
async def test_the_node_of_tools_is_read_and_shrinks_as_moves_end():
    at = await Desk.with_topics({"t": [(1, 2), (1, 2)]}, brokers=ALL)
    targets = {("t", 0): (3,), ("t", 1): (4,), ("nobody", 0): (1,)}
    value = controller_payloads.encode_reassignment(targets)
    await at.store.multi([Create(paths.REASSIGN_PARTITIONS, value)])
    begun = await at.reign.reassignments.resume_legacy()
    assert begun == at.state.partitions_of("t")
    await at.in_sync(1, 2, 3)
    assert await at.reign.legacy.read() == {("t", 1): (4,)}
    await at.in_sync(1, 2, 4, partition=begun[1])
    assert not at.exists(paths.REASSIGN_PARTITIONS)
    assert at.topic().assignment == {0: (3,), 1: (4,)}


@story
async def test_the_next_controller_begins_with_the_node_of_tools():
    at = await Desk.with_topics({"t": [(1, 2)]}, brokers=ALL)
    value = controller_payloads.encode_reassignment({("t", 0): (3,)})
    await at.store.multi([Create(paths.REASSIGN_PARTITIONS, value)])
    await at.next_epoch()
    assert assignment(at) == ((3, 1, 2), (3,), (1, 2))


@story
async def test_a_topic_that_is_deleted_is_not_moved_by_tools():
    at = await Desk.with_topics({"t": [(1, 2)]}, brokers=ALL)
    at.state.deleting["t"] = None
    value = controller_payloads.encode_reassignment({("t", 0): (3,)})
    await at.store.multi([Create(paths.REASSIGN_PARTITIONS, value)])
    assert await at.reign.reassignments.resume_legacy() == []
    assert not at.exists(paths.REASSIGN_PARTITIONS)
