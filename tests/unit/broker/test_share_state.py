"""The share coordinator on real logs: its topic, restarts, pruning, deleted topics."""

import asyncio

import pytest

from broker.share_state import TOPIC
from coordinator.share.batches import StateBatch
from coordinator.share.records import ShareKey
from coordinator.share.shard import StateWrite
from protocol.errors import ErrorCode
from protocol.records.batch import batches, read_header
from replication.controller.outcomes import TopicToDelete
from replication.metadata.configs import ConfigResource, ConfigType
from tests.support.handler_broker import HandlerBroker

ONE = {"share.coordinator.state.topic.num.partitions": "1"}


@pytest.fixture
def broker(tmp_path):
    with HandlerBroker(tmp_path, ONE) as broker:
        broker.runner.run(broker.ctx.share_state.create_topic())
        yield broker


def key_of(broker, topic="orders", partition=0):
    if topic not in broker.ctx.image.topics:
        broker.create(topic)
    return ShareKey("g", broker.ctx.image.topics[topic].topic_id, partition)


def ask(broker, what, *arguments):
    """What an operation of the manager ends with."""

    async def answer():
        future = asyncio.get_running_loop().create_future()
        getattr(broker.ctx.share_state.manager(), what)(*arguments, future.set_result)
        async with asyncio.timeout(60):
            return await future

    return broker.runner.run(answer())


def write(broker, key, offset):
    batch = StateBatch(offset, offset, 2, 1)
    assert ask(broker, "write", key, StateWrite(0, 0, 0, -1, [batch])).error is ErrorCode.NONE


def log(broker):
    return broker.ctx.replicas.get(TOPIC, 0).log


def test_the_topic_is_made_with_kafkas_settings(tmp_path):
    static = {
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.segment.bytes": "2000000",
    }
    with HandlerBroker(tmp_path, static) as broker:
        broker.runner.run(broker.ctx.share_state.create_topic())
        assert len(broker.ctx.image.topics[TOPIC].partitions) == 3
        assert broker.ctx.image.overrides(ConfigResource(ConfigType.TOPIC, TOPIC)) == {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "1",
            "retention.ms": "-1",
            "segment.bytes": "2000000",
        }


def test_state_comes_back_after_a_restart(tmp_path):
    with HandlerBroker(tmp_path, ONE) as broker:
        broker.runner.run(broker.ctx.share_state.create_topic())
        key = key_of(broker)
        ask(broker, "initialize", key, 2, 0)
        ask(broker, "write", key, StateWrite(2, 0, 5, 4, [StateBatch(5, 8, 2, 1)]))
        before = ask(broker, "read", key, 3).state
    with HandlerBroker(tmp_path, ONE, tree=broker.tree) as again:
        after = ask(again, "read", key, 3).state
        assert (after.state_epoch, after.start_offset, after.complete_count) == (2, 5, 4)
        assert after.batches == before.batches == (StateBatch(5, 8, 2, 1),)
        assert ask(again, "read", key, 2).error is ErrorCode.FENCED_LEADER_EPOCH


def test_settings_reach_the_coordinator(tmp_path):
    static = {
        **ONE,
        "share.coordinator.snapshot.update.records.per.snapshot": "1",
        "share.coordinator.state.topic.compression.codec": "4",
    }
    with HandlerBroker(tmp_path, static) as broker:
        broker.runner.run(broker.ctx.share_state.create_topic())
        key = key_of(broker)
        ask(broker, "initialize", key, 0, 0)
        for offset in range(2):
            write(broker, key, offset)
        assert ask(broker, "summary", key).state.snapshot_epoch == 1
        data = log(broker).read(0, 1 << 20, log(broker).end_offset).to_bytes()
        assert {read_header(data, at).codec for at, _ in batches(data)} == {4}


def test_what_is_not_needed_is_pruned(broker):
    key = key_of(broker)
    ask(broker, "initialize", key, 0, 0)
    for offset in range(5):
        write(broker, key, offset)
    broker.ctx.share_state.prune()
    assert log(broker).start_offset == 0
    ask(broker, "initialize", key, 0, 0)
    broker.ctx.share_state.prune()
    assert (log(broker).start_offset, log(broker).end_offset) == (6, 7)
    broker.ctx.share_state.prune()
    assert log(broker).start_offset == 6


def test_pruning_runs_by_itself(tmp_path):
    static = {**ONE, "share.coordinator.state.topic.prune.interval.ms": "1"}
    with HandlerBroker(tmp_path, static) as broker:
        broker.runner.run(broker.ctx.share_state.create_topic())
        key = key_of(broker)
        for _ in range(2):
            ask(broker, "initialize", key, 0, 0)

        async def pruned():
            async with asyncio.timeout(60):
                while log(broker).start_offset != 1:
                    await broker.ctx.env.run_blocking(int)

        broker.runner.run(pruned())


def test_cold_snapshots_are_made_by_themselves(tmp_path):
    static = {**ONE, "share.coordinator.cold.partition.snapshot.interval.ms": "2"}
    with HandlerBroker(tmp_path, static) as broker:
        broker.runner.run(broker.ctx.share_state.create_topic())
        ask(broker, "initialize", key_of(broker), 0, 0)

        async def repeated():
            async with asyncio.timeout(60):
                while log(broker).end_offset < 2:
                    await broker.ctx.env.run_blocking(int)

        broker.runner.run(repeated())


def test_the_state_of_a_deleted_topic_goes(broker):
    gone, kept = key_of(broker), key_of(broker, "kept")
    for key in (gone, kept):
        ask(broker, "initialize", key, 0, 0)

    async def delete():
        await broker.ctx.controller.delete_topics([TopicToDelete(name="orders")], timeout_ms=60_000)

    broker.runner.run(delete())
    assert ask(broker, "read", gone, 0).error is ErrorCode.INVALID_REQUEST
    assert ask(broker, "read", kept, 0).error is ErrorCode.NONE


def test_the_persister_is_one_object_and_ends_with_the_coordinator(broker):
    state = broker.ctx.share_state
    persister = state.persister()
    assert state.persister() is persister
    state.close()
    told = []
    persister.read("g", bytes(16), 0, 0, lambda *answer: told.append(answer))
    assert told == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)]
