"""Fenced writes, conflicts, and answers that got lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replication.controller.cluster_state import Leadership, TopicPartition
from replication.controller.ledger import OPERATIONS_PER_TRANSACTION, ControllerMoved, leadership_in
from replication.metadata import paths
from replication.metadata.store import BadVersion, ConnectionLost, Create, Delete, NoNode, Put
from tests.unit.replication.controller.desk import T0, T1, Desk, story


async def desk() -> Desk:
    return await Desk.with_topics({"t": [(1, 2), (2, 1)]}, begin=False)


def lose(store, *, applied: bool, times: int = 1) -> None:
    """The next transactions lose their connection, with or without having been applied."""
    multi, left = store.multi, [times]

    async def once(operations):
        if left[0] == 0:
            return await multi(operations)
        left[0] -= 1
        if applied:
            await multi(operations)
        raise ConnectionLost(operations[0].path)

    store.multi = once


@story
async def test_a_state_is_replaced_if_its_version_is_the_expected_one():
    at = await desk()
    wanted = replace(await at.ledger.leadership(T0), leader_epoch=4, isr=(1,))
    written = await at.ledger.put_leaderships({T0: wanted})
    assert written.done == {T0: Leadership(1, 4, (1,), 1, 1)}
    assert at.leads() == (1, 4, (1,))
    written = await at.ledger.put_leaderships({T0: wanted})
    assert (written.done, written.conflicts) == ({}, [T0])


@story
async def test_one_conflict_does_not_hold_up_the_others():
    at = await desk()
    first, second = await at.ledger.leadership(T0), await at.ledger.leadership(T1)
    gone = TopicPartition("t", 7)
    written = await at.ledger.put_leaderships(
        {T0: replace(first, partition_epoch=9), gone: first, T1: replace(second, leader_epoch=1)}
    )
    assert list(written.done) == [T1]
    assert written.conflicts == [T0]
    assert written.failed == [gone]


@story
async def test_an_earlier_controller_writes_nothing_any_more():
    at = await desk()
    known = await at.ledger.leadership(T0)
    await at.store.put(paths.CONTROLLER_EPOCH, b"2")
    with pytest.raises(ControllerMoved):
        await at.ledger.put_leaderships({T0: replace(known, leader=2)})
    with pytest.raises(ControllerMoved):
        await at.ledger.write([Delete(paths.topic("t"))])
    assert at.leads() == (1, 0, (1, 2))


@story
async def test_unfenced_writes_are_anybodys():
    at = await desk()
    await at.store.put(paths.CONTROLLER_EPOCH, b"2")
    await at.ledger.write_unfenced([Create(paths.topic("new"), b"")])
    assert at.exists(paths.topic("new"))


@story
async def test_a_refusal_names_the_operation_among_those_given():
    at = await desk()
    with pytest.raises(NoNode) as refused:
        await at.ledger.write([Put(paths.topic("t"), b""), Delete("/nowhere")])
    assert refused.value.operation_index == 1


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_to_a_write_is_found_out(applied):
    @story
    async def run():
        at = await desk()
        known = await at.ledger.leadership(T0)
        lose(at.store, applied=applied, times=1)
        written = await at.ledger.put_leaderships({T0: replace(known, leader=2, leader_epoch=1)})
        assert written.done == {T0: Leadership(2, 1, (1, 2), 1, 1)}
        assert at.paused == 1
        assert at.leads() == (2, 1, (1, 2))

    run()


@story
async def test_a_lost_answer_does_not_hide_a_conflict():
    at = await desk()
    known = await at.ledger.leadership(T0)
    await at.store.put(paths.partition_state("t", 0), b"{}")
    lose(at.store, applied=False)
    with pytest.raises(BadVersion):
        await at.ledger.write([Put(paths.partition_state("t", 0), b"[]", known.partition_epoch)])


@story
async def test_lost_answers_to_creations_and_deletions_are_found_out():
    at = await desk()
    lose(at.store, applied=True)
    assert await at.ledger.write([Create("/consumers/a", b"1"), Delete("/brokers/seqid")]) == [0, -1]
    assert at.exists("/consumers/a")


@story
async def test_the_nodes_of_a_new_partition_are_made_from_the_folder_on():
    at = await desk()
    await at.add_topic("u", [(1,), (2,)])
    new = {TopicPartition("u", i): Leadership(i + 1, 0, (i + 1,), 0, 1) for i in range(2)}
    written = await at.ledger.create_leaderships(new)
    assert written.done == new
    assert at.leads("u", 1) == (2, 0, (2,))
    again = await at.ledger.create_leaderships(new)
    assert again.failed == list(new)


@story
async def test_a_partition_node_without_a_state_is_used():
    at = await desk()
    await at.add_topic("u", [(1,)])
    await at.store.create(paths.partitions("u"), b"")
    await at.store.create(paths.partition("u", 0), b"")
    partition = TopicPartition("u", 0)
    written = await at.ledger.create_leaderships({partition: Leadership(1, 0, (1,), 0, 1)})
    assert list(written.done) == [partition]


@story
async def test_a_topic_that_is_gone_gets_no_partitions():
    at = await desk()
    partition = TopicPartition("gone", 0)
    written = await at.ledger.create_leaderships({partition: Leadership(1, 0, (1,), 0, 1)})
    assert written.failed == [partition]


@story
async def test_many_states_take_few_transactions():
    at = await Desk.with_topics({"t": [(1,)] * 250}, begin=False)
    sizes = []
    multi = at.store.multi

    async def counted(operations):
        sizes.append(len(operations))
        return await multi(operations)

    at.store.multi = counted
    partitions = [TopicPartition("t", index) for index in range(250)]
    known = {partition: await at.ledger.leadership(partition) for partition in partitions}
    written = await at.ledger.put_leaderships({p: k.led_by(-1) for p, k in known.items()})
    assert list(written.done) == partitions
    assert sizes == [OPERATIONS_PER_TRANSACTION + 1] * 2 + [51]


@story
async def test_after_the_end_of_the_office_only_the_abdication_is_written():
    at = await desk()
    at.ledger.revoke()
    with pytest.raises(ControllerMoved):
        await at.ledger.get(paths.TOPICS)
    with pytest.raises(ControllerMoved):
        await at.ledger.write([])
    await at.ledger.abdicate()
    assert not at.exists(paths.CONTROLLER)
    await at.ledger.abdicate()


@story
async def test_a_fenced_controller_does_not_take_away_its_successor():
    at = await desk()
    await at.store.put(paths.CONTROLLER_EPOCH, b"2")
    await at.ledger.abdicate()
    assert at.exists(paths.CONTROLLER)


@story
async def test_reads_wait_for_the_connection_and_end_with_the_session():
    at = await desk()
    get, answers = at.store.get, [ConnectionLost("/x"), ConnectionLost("/x")]

    async def flaky(path):
        if answers:
            raise answers.pop()
        return await get(path)

    at.store.get = flaky
    known = await at.ledger.leadership(T0)
    assert (known.leader, at.paused) == (1, 2)
    assert await at.ledger.children("/nowhere") == []
    at.store.expire()
    with pytest.raises(ControllerMoved):
        await at.ledger.get(paths.TOPICS)
    with pytest.raises(ControllerMoved):
        await at.ledger.write([])


@story
async def test_a_stored_state_carries_the_version_of_its_node():
    at = await desk()
    path = paths.partition_state("t", 0)
    await at.store.put(path, at.tree.nodes[path].value)
    assert leadership_in(path, at.tree.nodes[path]) == Leadership(1, 0, (1, 2), 1, 1)
