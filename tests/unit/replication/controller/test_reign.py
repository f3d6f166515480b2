"""How an epoch begins, and that parts are reached by what brokers answer."""

from __future__ import annotations

from replication.metadata import controller_payloads, paths
from replication.metadata.store import Put
from tests.unit.replication.controller.desk import T0, T1, Desk, story


@story
async def test_all_brokers_hear_who_is_there_before_any_leader_is_named():
    at = await Desk.with_topics({"t": [(1, 2)]}, begin=False)
    await at.reign.begin()
    told = at.told()
    assert told[:3] == ["UMR 1", "UMR 2", "UMR 3"]
    assert told[3:5] == ["LISR 1 t-0 leader 1/0 isr 1,2", "LISR 2 t-0 leader 1/0 isr 1,2"]


@story
async def test_what_is_stored_is_what_is_known():
    at = await Desk.with_topics({"t": [(1, 2), (2, 3)]}, begin=False)
    await at.reign.begin()
    assert sorted(at.state.brokers) == [1, 2, 3]
    assert at.state.topic_ids == {"t": b"t" * 16}
    assert at.state.leaderships[T1].isr == (2, 3)
    assert set(at.followed) == {*(paths.broker(b) for b in (1, 2, 3)), paths.topic("t")}


@story
async def test_a_leader_that_is_gone_is_replaced_at_once():
    at = await Desk.with_topics({"t": [(9, 1, 2)]}, begin=False)
    await at.reign.begin()
    assert at.leads() == (1, 2, (1, 2))


@story
async def test_kafkas_features_are_made_and_enabled_and_otherwise_left_alone():
    at = await Desk.with_topics()
    value = at.tree.nodes[paths.KAFKA_FEATURE].value
    assert value == controller_payloads.encode_kafka_feature()
    await at.store.multi([Put(paths.KAFKA_FEATURE, b'{"version":2,"status":0,"features":{}}')])
    await at.next_epoch()
    assert at.tree.nodes[paths.KAFKA_FEATURE].value == value
    version = at.tree.nodes[paths.KAFKA_FEATURE].version
    await at.next_epoch()
    assert at.tree.nodes[paths.KAFKA_FEATURE].version == version


@story
async def test_damaged_nodes_do_not_hold_up_the_rest():
    at = await Desk.with_topics({"t": [(1, 2), (2, 1)]})
    await at.store.multi([Put(paths.partition_state("t", 0), b"{")])
    await at.store.create(paths.topic("broken"), b"{")
    await at.store.create(paths.broker(7), b"{")
    await at.next_epoch()
    assert T0 not in at.state.leaderships
    assert at.leads("t", 1) == (2, 0, (2, 1))
    assert sorted(at.state.brokers) == [1, 2, 3]
