"""What both coordinators' lives have in common. What they do apart is in test_groups and test_share_state."""

import asyncio

import pytest

from broker import coordinators
from broker.coordinators import Loads
from coordinator.runtime import State
from protocol.errors import ErrorCode
from replication.controller.outcomes import TopicToDelete
from replication.metadata.payloads import BadPayload
from replication.metadata.store import StoreFailed
from tests.support.handler_broker import HandlerBroker

FEW = {"offsets.topic.num.partitions": "3", "share.coordinator.state.topic.num.partitions": "2"}


@pytest.fixture
def broker(tmp_path):
    with HandlerBroker(tmp_path, FEW) as broker:
        yield broker


@pytest.mark.parametrize(("name", "partitions"), [("groups", 3), ("share_state", 2)])
def test_a_coordinator_lives_as_long_as_its_topic(broker, name, partitions):
    life = getattr(broker.ctx, name)
    key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"
    assert (life.has_topic(), life.coordinator_of(key)) == (False, -1)
    assert broker.runner.run(life.create_topic()) is ErrorCode.NONE
    assert (life.has_topic(), life.coordinator_of(key)) == (True, 1)
    runtime = life.manager().runtime
    assert runtime.active_partitions() == list(range(partitions))
    assert broker.runner.run(life.create_topic()) is ErrorCode.NONE
    broker.runner.run(
        broker.ctx.controller.delete_topics([TopicToDelete(name=life.topic)], timeout_ms=60_000)
    )
    assert (life.has_topic(), life.coordinator_of(key)) == (False, -1)
    assert runtime.state(0) is State.CLOSED
    broker.runner.run(life.create_topic())
    assert runtime.active_partitions() == list(range(partitions))
    life.close()
    assert (life.closed, life.coordinator_of(key), runtime.active_partitions()) == (True, -1, [])


@pytest.mark.parametrize("name", ["groups", "share_state"])
def test_all_is_loaded_before_a_start_ends(tmp_path, name):
    with HandlerBroker(tmp_path, FEW) as broker:
        broker.runner.run(getattr(broker.ctx, name).create_topic())
    with HandlerBroker(tmp_path, FEW, tree=broker.tree) as again:
        life = getattr(again.ctx, name)
        assert life._manager is not None
        runtime = life.manager().runtime
        assert {runtime.state(0), runtime.state(1)} == {State.ACTIVE}


@pytest.mark.parametrize(
    ("name", "factor", "who"),
    [
        ("groups", "offsets.topic.replication.factor", "Groups"),
        ("share_state", "share.coordinator.state.topic.replication.factor", "Share groups"),
    ],
)
def test_a_topic_that_cannot_be_made_is_told_of_once(tmp_path, caplog, name, factor, who):
    with HandlerBroker(tmp_path, {factor: "3"}) as broker:
        life = getattr(broker.ctx, name)
        for _ in range(2):
            assert broker.runner.run(life.create_topic()) is ErrorCode.INVALID_REPLICATION_FACTOR
        [record] = [each for each in caplog.records if each.name == "ottla.coordinators"]
        assert record.getMessage().startswith(f"{who} have no coordinator, as {life.topic} cannot be created")


def test_keys_are_spread_over_the_partitions_that_the_store_counts(broker):
    """The image may not have all of them yet. Until the store has answered nobody has a coordinator."""
    life = broker.ctx.groups
    asked, answer = asyncio.Event(), asyncio.Event()

    async def count(topic):
        assert topic == life.topic
        asked.set()
        await answer.wait()
        return 7

    async def create():
        creating = asyncio.ensure_future(life.create_topic())
        await asked.wait()
        assert (life.coordinator_of("g"), life.manager().runtime.partition_count) == (-1, 0)
        answer.set()
        return await creating

    life.count_partitions = count
    assert broker.runner.run(create()) is ErrorCode.NONE
    runtime = life.manager().runtime
    assert runtime.partition_count == 7
    found = {runtime.partition_for(key): life.coordinator_of(key) for key in "abcdefg"}
    assert found == {0: 1, 1: 1, 2: 1, 3: -1, 4: -1, 5: -1, 6: -1}, "of some the image has not heard"
    topic = TopicToDelete(name=life.topic)
    broker.runner.run(broker.ctx.controller.delete_topics([topic], timeout_ms=60_000))
    assert runtime.partition_count == 3, "as many as it would be made with"


def test_a_store_that_does_not_count_is_asked_again(broker, monkeypatch, caplog):
    life = broker.ctx.groups
    monkeypatch.setattr(coordinators, "COUNT_AGAIN_S", 0)
    answers = [StoreFailed(life.topic), BadPayload(life.topic, "damaged"), 3]

    async def count(topic):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    life.count_partitions = count
    assert broker.runner.run(life.create_topic()) is ErrorCode.NONE
    assert (answers, life.manager().runtime.partition_count) == ([], 3)
    told = [each for each in caplog.records if each.name == "ottla.coordinators"]
    assert [each.getMessage().startswith("Groups have no coordinator on this broker") for each in told] == [
        True,
        True,
    ]


def test_loads_run_a_few_at_a_time_and_are_waited_for(broker):
    running, most, ended = 0, 0, []

    async def load(number):
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        ended.append(number)

    async def all_of_them():
        loads = Loads(broker.ctx.env)
        await loads.settled()
        for number in range(10):
            loads.spawn(f"load {number}", load(number))
        await loads.settled()

    broker.runner.run(all_of_them())
    assert sorted(ended) == list(range(10))
    assert most == 4


def test_a_load_that_is_cancelled_before_its_turn_leaves_nothing_behind(broker, recwarn):
    async def never():
        raise AssertionError

    async def cancel():
        loads = Loads(broker.ctx.env)
        task = loads.spawn("load", never())
        task.cancel()
        await loads.settled()

    broker.runner.run(cancel())
    assert not recwarn.list
