"""The persister: on a real broker, and on a coordinator that fails at will."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from broker.share.persister import Persister
from coordinator.group.share.ports import Summary
from coordinator.share.shard import Answer
from protocol.errors import ErrorCode as E
from replication.share.ports import ShareState, StateBatch, StateWrite
from tests.support.handler_broker import HandlerBroker
from tests.unit.coordinator.memory_topic import VirtualTime

TOPIC_ID = b"topic-id-16-long"


@pytest.fixture
def broker(tmp_path):
    with HandlerBroker(tmp_path, {"share.coordinator.state.topic.num.partitions": "3"}) as broker:
        yield broker


def ask(broker: HandlerBroker, what: str, *arguments: Any) -> Any:
    async def answer() -> Any:
        future = asyncio.get_running_loop().create_future()
        told = lambda *told: future.set_result(told[0] if len(told) == 1 else told)  # noqa: E731
        getattr(broker.ctx.share_state.persister(), what)(*arguments, told)
        async with asyncio.timeout(60):
            return await future

    return broker.runner.run(answer())


def test_the_first_call_makes_the_topic(broker):
    broker.create("orders", partitions=2)
    topic_id = broker.ctx.image.topics["orders"].topic_id
    assert not broker.ctx.share_state.has_topic()
    told = ask(broker, "initialize", "g", {topic_id: {0: 5, 1: -1, 2: 0}}, 3)
    assert told == {
        (topic_id, 0): E.NONE,
        (topic_id, 1): E.NONE,
        (topic_id, 2): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert broker.ctx.share_state.has_topic()


def test_what_leaders_write_they_read_and_groups_see(broker):
    broker.create("orders")
    topic_id = broker.ctx.image.topics["orders"].topic_id
    ask(broker, "initialize", "g", {topic_id: {0: 5}}, 3)
    assert ask(broker, "read", "g", topic_id, 0, 2) == (E.NONE, ShareState(3, 5, []))
    batches = [StateBatch(5, 7, 2, 1), StateBatch(8, 9, 0, 1)]
    change = StateWrite("g", topic_id, 0, 3, 2, 5, 3, batches)
    assert ask(broker, "write", change) is E.NONE
    assert ask(broker, "read", "g", topic_id, 0, 2) == (E.NONE, ShareState(3, 5, batches))
    assert ask(broker, "read", "g", topic_id, 0, 1) == (E.FENCED_LEADER_EPOCH, None)
    told = ask(broker, "summaries", "g", {topic_id: [0, 1]})
    assert told == {
        (topic_id, 0): Summary(E.NONE, 5, 2, 3),
        (topic_id, 1): Summary(E.UNKNOWN_TOPIC_OR_PARTITION),
    }
    assert ask(broker, "delete", "g", {topic_id: [0, 0]}) == {(topic_id, 0): E.NONE}
    assert ask(broker, "summaries", "g", {topic_id: [0]}) == {(topic_id, 0): Summary(E.NONE, -1, 0, -1)}


def test_nothing_asked_for_is_answered_too(broker):
    assert ask(broker, "delete", "g", {}) == {}


class Coordinator:
    """A share coordinator whose answers stand in a list; it notes what it is asked."""

    def __init__(self, *errors: E) -> None:
        self.errors = list(errors)
        self.asked: list[int] = []
        self.closed = False
        self.topic = True
        self.created = 0

    def has_topic(self) -> bool:
        return self.topic

    async def create_topic(self) -> E:
        self.created += 1
        self.topic = True
        return E.NONE

    def manager(self) -> Any:
        return SimpleNamespace(write=self._write)

    def _write(self, key: Any, change: Any, done: Any) -> None:
        self.asked.append(change.start_offset)
        done(Answer(self.errors.pop(0) if self.errors else E.NONE))


class Persisting:
    """A persister in virtual time; `told` are the start offsets of writes that were answered, with errors."""

    def __init__(self, *errors: E) -> None:
        self.coordinator, self.time = Coordinator(*errors), VirtualTime()
        self.spawned: list[Any] = []
        env = SimpleNamespace(
            timer=self.time, tasks=SimpleNamespace(spawn=lambda _, work: self.spawned.append(work))
        )
        self.persister = Persister(self.coordinator, env)  # type: ignore[arg-type]
        self.told: list[tuple[int, E]] = []

    def write(self, number: int, partition: int = 0) -> None:
        change = StateWrite("g", TOPIC_ID, partition, 0, 0, number, 0, ())
        self.persister.write(change, lambda error: self.told.append((number, error)))


def test_a_coordinator_that_is_not_there_is_asked_again_after_growing_pauses():
    play = Persisting(E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)
    play.write(1)
    for pause_ms in (1000, 2000, 4000):
        play.time.advance(pause_ms - 1)
        assert play.told == []
        play.time.advance(1)
    assert play.told == [(1, E.NONE)]
    assert play.coordinator.asked == [1, 1, 1, 1]


def test_it_is_asked_five_times():
    play = Persisting(*[E.NOT_COORDINATOR] * 9)
    play.write(1)
    for _ in range(40):
        play.time.advance(1000)
    assert (play.coordinator.asked, play.told) == ([1] * 5, [(1, E.NOT_COORDINATOR)])


@pytest.mark.parametrize("error", [E.FENCED_LEADER_EPOCH, E.FENCED_STATE_EPOCH, E.INVALID_REQUEST])
def test_refusals_are_final(error):
    play = Persisting(error)
    play.write(1)
    assert play.told == [(1, error)]


def test_what_comes_meanwhile_for_the_same_share_partition_waits_behind():
    play = Persisting(E.NOT_COORDINATOR)
    play.write(1)
    play.write(2)
    play.write(3, partition=1)
    assert (play.coordinator.asked, play.told) == ([1, 3], [(3, E.NONE)])
    play.coordinator.errors = [E.NOT_COORDINATOR]
    play.time.advance(1000)
    assert play.coordinator.asked == [1, 3, 1]
    play.time.advance(2000)
    assert (play.coordinator.asked, play.told) == ([1, 3, 1, 1, 2], [(3, E.NONE), (1, E.NONE), (2, E.NONE)])


def test_calls_that_come_while_the_topic_is_made_wait_for_it():
    play = Persisting()
    play.coordinator.topic = False
    play.write(1)
    play.write(2)
    assert len(play.spawned) == 1
    asyncio.run(play.spawned[0])
    assert (play.coordinator.created, play.told) == (1, [(1, E.NONE), (2, E.NONE)])


def test_whoever_waits_at_a_stop_is_answered():
    play = Persisting(E.NOT_COORDINATOR)
    play.write(1)
    play.write(2)
    play.coordinator.topic = False
    play.write(3, partition=1)
    play.coordinator.closed = True
    play.persister.close()
    play.write(4)
    assert play.told == [(number, E.COORDINATOR_NOT_AVAILABLE) for number in (1, 2, 3, 4)]
    asyncio.run(play.spawned[0])
    play.time.advance(5000)
    assert (play.coordinator.asked, len(play.told)) == ([1], 4)
