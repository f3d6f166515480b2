"""The node /admin/reassign_partitions."""

from __future__ import annotations

from replication.metadata import controller_payloads, paths
from replication.metadata.store import Create, Put
from tests.unit.replication.controller.desk import T0, T1, Desk, story


async def asked(*partitions) -> Desk:
    at = await Desk.with_topics({"t": [(1,), (1,)]})
    value = controller_payloads.encode_reassignment(dict.fromkeys(partitions, (2, 3)))
    await at.store.multi([Create(paths.REASSIGN_PARTITIONS, value)])
    return at


@story
async def test_targets_are_read():
    at = await asked(T0, T1)
    assert await at.reign.legacy.read() == {T0: (2, 3), T1: (2, 3)}


@story
async def test_what_is_forgotten_leaves_the_node_and_the_last_one_takes_it_away():
    at = await asked(T0, T1)
    await at.reign.legacy.forget(lambda partition, target: partition == T0 and target == (2, 3))
    assert await at.reign.legacy.read() == {T1: (2, 3)}
    await at.reign.legacy.forget(lambda partition, _: partition == T0)
    assert at.exists(paths.REASSIGN_PARTITIONS)
    await at.reign.legacy.forget(lambda *_: True)
    assert not at.exists(paths.REASSIGN_PARTITIONS)
    await at.reign.legacy.forget(lambda *_: True)


@story
async def test_a_damaged_node_asks_for_nothing():
    at = await asked(T0)
    await at.store.multi([Put(paths.REASSIGN_PARTITIONS, b'{"partitions":[{"topic":1}]}')])
    assert await at.reign.legacy.read() == {}
