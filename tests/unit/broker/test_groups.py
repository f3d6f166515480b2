"""The life of the group coordinator: when it is made, what it serves, and that state comes back."""

import asyncio

import pytest

from broker.groups import TOPIC, Groups
from coordinator.group.classic import events as ev
from coordinator.group.manager import Committer
from coordinator.group.offsets import Commit
from coordinator.runtime import State
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import MorePartitions, TopicToDelete
from tests.support.handler_broker import HandlerBroker

FEW = {"offsets.topic.num.partitions": "3"}


@pytest.fixture
def broker(tmp_path):
    with HandlerBroker(tmp_path, FEW) as broker:
        yield broker


def find(broker, group="g"):
    [found] = broker.call(m.FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators
    return found.error_code


async def answer_of(call):
    """What a call with a `done(error, response)` ends with."""
    future = asyncio.get_running_loop().create_future()
    call(lambda *told: future.set_result(told))
    async with asyncio.timeout(60):
        return await future


async def until(broker, condition):
    async with asyncio.timeout(60):
        while not condition():
            await broker.ctx.env.run_blocking(int)


def commit(broker, group, topic, offset, partition=0):
    manager = broker.ctx.groups.manager()
    commits = [Commit(topic, partition, offset)]
    call = lambda done: manager.commit_offsets(group, Committer(), 9, commits, done)  # noqa: E731
    return broker.runner.run(answer_of(call))


def committed(broker, group, topic, partition=0):
    told = []
    broker.ctx.groups.manager().fetch_offsets(group, [(topic, partition)], lambda *end: told.append(end))
    [(error, found)] = told
    return found[0].offset if found else error


def join(broker, group):
    """A member on its own joins; its first round has it answered at once with the id it must use."""

    def event(token):
        return ev.JoinGroup(
            token, 4, "", 30_000, 60_000, "consumer", (("range", b""),), client_id="c", client_host="h"
        )

    async def ask():
        future = asyncio.get_running_loop().create_future()
        broker.ctx.groups.manager().handle(group, event, future.set_result)
        return await future

    return broker.runner.run(ask())


def test_without_the_topic_no_group_is_owned(broker):
    manager = broker.ctx.groups.manager()
    assert manager.list_groups() == []
    assert commit(broker, "g", "orders", 1) == (ErrorCode.NOT_COORDINATOR, None)
    assert broker.ctx.groups.coordinator_of("g") == -1
    assert TOPIC not in broker.ctx.image.topics


def test_the_topic_makes_groups_work_at_once(broker):
    assert find(broker) == 0
    runtime = broker.ctx.groups.manager().runtime
    assert runtime.active_partitions() == [0, 1, 2]
    assert commit(broker, "g", "orders", 41) == (ErrorCode.NONE, [ErrorCode.NONE])
    assert committed(broker, "g", "orders") == 41
    assert join(broker, "g").error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_looking_for_many_groups_at_once_makes_one_topic(broker):
    async def both():
        groups = broker.ctx.groups
        return await asyncio.gather(groups.create_topic(), groups.create_topic())

    assert broker.runner.run(both()) == [ErrorCode.NONE, ErrorCode.NONE]
    assert find(broker) == 0


def test_that_the_topic_cannot_be_made_is_said_once(tmp_path, caplog):
    with HandlerBroker(tmp_path, {"offsets.topic.replication.factor": "3"}) as broker:
        assert [find(broker), find(broker)] == [15, 15]
    assert len([each for each in caplog.records if TOPIC in each.getMessage()]) == 1


def test_state_is_there_before_anything_is_served_after_a_start(tmp_path):
    with HandlerBroker(tmp_path, FEW) as broker:
        find(broker)
        for number in range(20):
            commit(broker, f"g{number}", "orders", number)
        tree = broker.tree
    more = {"offsets.topic.num.partitions": "7"}  # the topic's own number counts
    with HandlerBroker(tmp_path, more, tree=tree) as broker:
        assert broker.ctx.groups.manager().runtime.active_partitions() == [0, 1, 2]
        assert [committed(broker, f"g{number}", "orders") for number in range(20)] == list(range(20))
        assert commit(broker, "g3", "orders", 99) == (ErrorCode.NONE, [ErrorCode.NONE])
        assert committed(broker, "g3", "orders") == 99


@pytest.mark.parametrize("codec", range(5))
def test_records_are_compressed_as_configured_and_come_back(tmp_path, codec):
    static = {**FEW, "offsets.topic.compression.codec": str(codec)}
    with HandlerBroker(tmp_path, static) as broker:
        find(broker)
        commit(broker, "g", "orders", 7)
        runtime = broker.ctx.groups.manager().runtime
        log = broker.ctx.replicas.get(TOPIC, runtime.partition_for("g")).log
        batch = log.read(0, 1 << 20, log.end_offset).to_bytes()
        assert int.from_bytes(batch[21:23], "big") & 7 == codec
        tree = broker.tree
    with HandlerBroker(tmp_path, static, tree=tree) as broker:
        assert committed(broker, "g", "orders") == 7


def test_the_offsets_of_a_deleted_topic_go(broker):
    find(broker)
    broker.create("orders")
    broker.create("kept")
    for group in ("a", "b", "c", "d"):
        commit(broker, group, "orders", 5)
        commit(broker, group, "kept", 6)

    async def delete():
        await broker.ctx.controller.delete_topics([TopicToDelete("orders")], timeout_ms=60_000)
        await until(broker, lambda: all(committed(broker, group, "orders") == -1 for group in "abcd"))

    broker.runner.run(delete())
    assert [committed(broker, group, "kept") for group in "abcd"] == [6] * 4


def test_deleting_the_topic_of_the_groups_ends_them_all(broker):
    find(broker)
    commit(broker, "g", "orders", 5)
    runtime = broker.ctx.groups.manager().runtime
    broker.runner.run(broker.ctx.controller.delete_topics([TopicToDelete(TOPIC)], timeout_ms=60_000))
    assert [runtime.state(partition) for partition in range(3)] == [State.CLOSED] * 3
    assert commit(broker, "g", "orders", 5) == (ErrorCode.NOT_COORDINATOR, None)
    assert find(broker) == 0
    assert committed(broker, "g", "orders") == -1
    assert commit(broker, "g", "orders", 1) == (ErrorCode.NONE, [ErrorCode.NONE])


def test_a_topic_that_grows_keeps_groups_where_they_are(broker):
    find(broker)
    commit(broker, "g", "orders", 5)
    broker.runner.run(broker.ctx.controller.create_partitions([MorePartitions(TOPIC, 9)], timeout_ms=60_000))
    assert committed(broker, "g", "orders") == 5
    assert broker.ctx.groups.coordinator_of("g") == 1
    assert commit(broker, "g", "orders", 6) == (ErrorCode.NONE, [ErrorCode.NONE])


def test_what_is_over_is_removed_every_so_often(tmp_path):
    static = {**FEW, "offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1"}
    with HandlerBroker(tmp_path, static) as broker:
        find(broker)
        commit(broker, "g", "orders", 5)
        assert committed(broker, "g", "orders") == 5
        broker.ctx.groups.manager().retention_ms = 0
        broker.runner.run(until(broker, lambda: committed(broker, "g", "orders") == -1))


def test_after_close_nothing_is_served(broker):
    find(broker)
    groups = broker.ctx.groups
    groups.close()
    assert commit(broker, "g", "orders", 5) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    assert groups.coordinator_of("g") == -1
    assert find(broker) == 15
    broker.create("later")  # the image moves on without it


def test_a_coordinator_that_is_first_asked_for_after_close_serves_nothing(broker):
    groups = broker.ctx.groups
    groups.close()
    assert commit(broker, "g", "orders", 5) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, None)


def test_settings_reach_the_groups(tmp_path):
    static = {
        **FEW,
        "group.min.session.timeout.ms": "40000",
        "offset.metadata.max.bytes": "3",
        "offsets.retention.minutes": "2",
    }
    with HandlerBroker(tmp_path, static) as broker:
        find(broker)
        assert join(broker, "g").error_code == ErrorCode.INVALID_SESSION_TIMEOUT
        manager = broker.ctx.groups.manager()
        assert manager.retention_ms == 120_000
        commits = [Commit("t", 0, 1, -1, "four"), Commit("t", 1, 1, -1, "one")]
        call = lambda done: manager.commit_offsets("g", Committer(), 9, commits, done)  # noqa: E731
        error, errors = broker.runner.run(answer_of(call))
        assert (error, errors) == (ErrorCode.NONE, [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE])


def test_making_it_costs_nothing_before_the_first_group(broker):
    ctx = broker.ctx
    groups = Groups(ctx.env, ctx.config, ctx.holder, ctx.controller, ctx.replicas, None)
    broker.create("orders")
    assert groups._manager is None
