"""Topics and partitions that appear in the store, or vanish."""

from __future__ import annotations

from replication.controller.topic_changes import read_topic
from replication.metadata import paths, payloads
from replication.metadata.store import Delete, Put
from runtime.entropy import SeededRandom
from tests.unit.replication.controller.desk import Desk, story


@story
async def test_a_topic_that_any_broker_created_gets_leaders():
    at = await Desk.with_topics()
    await at.add_topic("t", [(1, 2), (2, 3)])
    assert await at.reign.topics.on_topics() == ["t"]
    assert at.leads("t", 0) == (1, 0, (1, 2))
    assert at.leads("t", 1) == (2, 0, (2, 3))
    assert paths.topic("t") in at.followed
    assert at.told()[0] == "LISR 1 t-0 leader 1/0 isr 1,2 new"
    assert await at.reign.topics.on_topics() == []


@story
async def test_a_topic_that_vanishes_is_forgotten():
    at = await Desk.with_topics({"t": [(1, 2)]})
    nodes = sorted((p for p in at.tree.nodes if p.startswith(paths.topic("t"))), reverse=True)
    await at.store.multi([Delete(path) for path in nodes])
    assert await at.reign.topics.on_topics() == []
    assert at.state.assignments == at.state.leaderships == {}


@story
async def test_partitions_that_were_added_get_leaders():
    at = await Desk.with_topics({"t": [(1, 2)]})
    grown = payloads.TopicPayload(at.topic().topic_id, {0: (1, 2), 1: (3, 1)}, {}, {})
    await at.store.multi([Put(paths.topic("t"), payloads.encode_topic(grown))])
    await at.reign.topics.on_partitions("t")
    assert at.leads("t", 1) == (3, 0, (3, 1))
    assert at.leads("t", 0) == (1, 0, (1, 2))
    at.told()
    await at.reign.topics.on_partitions("t")
    await at.reign.topics.on_partitions("nobody")
    assert at.told() == []


@story
async def test_a_creation_that_was_cut_short_is_finished_by_the_next_controller():
    at = await Desk.with_topics({"u": [(1, 2)]})
    await at.add_topic("t", [(1, 2), (2, 3), (3, 1)])
    await at.add_state("t", 0, (1, 2))
    await at.store.create(paths.partition("t", 1), b"")
    await at.next_epoch()
    assert at.leads("t", 0) == (1, 0, (1, 2))
    assert at.leads("t", 1) == (2, 0, (2, 3))
    assert at.leads("t", 2) == (3, 0, (3, 1))


@story
async def test_a_topic_without_an_id_is_given_one():
    at = await Desk.with_topics()
    await at.add_topic("t", [(1, 2)], topic_id=None)
    await at.reign.topics.on_topics()
    stored = at.topic()
    assert stored.topic_id is not None
    assert at.state.topic_ids["t"] == stored.topic_id
    assert stored.assignment == {0: (1, 2)}


@story
async def test_a_topic_that_cannot_be_read_is_left_alone():
    at = await Desk.with_topics()
    await at.store.create(paths.topic("t"), b"{")
    assert await at.reign.topics.on_topics() == []
    assert await read_topic(at.ledger, "t", SeededRandom(b"")) is None
    assert await read_topic(at.ledger, "nobody", SeededRandom(b"")) is None
