"""Brokers that are about to stop."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.controller.cluster_state import TopicPartition
from tests.unit.replication.controller.desk import T0, T1, Desk, story


async def shutting_down(broker=1, **topics) -> Desk:
    at = await Desk.with_topics(topics or {"t": [(1, 2, 3), (2, 1, 3)], "u": [(1,)]})
    epoch = at.state.brokers[broker].epoch
    at.answer = await at.reign.shutdowns.shut_down(broker, epoch)
    return at


@story
async def test_leaderships_move_and_the_broker_leaves_the_sets_in_sync():
    at = await shutting_down()
    assert at.answer == (ErrorCode.NONE, [])
    assert at.leads("t", 0) == (2, 1, (2, 3))
    assert at.leads("t", 1) == (2, 1, (2, 3))
    assert at.leads("u", 0) == (1, 0, (1,))
    told = at.told()
    assert told[:3] == [f"LISR {broker} t-0 leader 2/1 isr 2,3" for broker in (1, 2, 3)]
    assert "SR 1 t-1 0" in told
    assert not any("u-0" in line for line in told)


@story
async def test_what_cannot_move_is_named():
    at = await Desk.with_topics({"t": [(1, 2)], "u": [(1,)]})
    await at.goes(2)
    answer = await at.reign.shutdowns.shut_down(1, at.state.brokers[1].epoch)
    assert answer == (ErrorCode.NONE, [T0])
    assert at.leads() == (1, 1, (1,))


@story
async def test_an_earlier_life_of_the_broker_is_refused():
    at = await Desk.with_topics({"t": [(1, 2)]})
    epoch = at.state.brokers[1].epoch
    assert await at.reign.shutdowns.shut_down(1, epoch - 1) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert at.state.shutting_down == {}
    assert (await at.reign.shutdowns.shut_down(1, -1))[0] is ErrorCode.NONE
    assert await at.reign.shutdowns.shut_down(9, 1) == (ErrorCode.BROKER_NOT_AVAILABLE, [])


@story
async def test_it_may_ask_again():
    at = await shutting_down()
    again = await at.reign.shutdowns.shut_down(1, at.state.brokers[1].epoch)
    assert again == (ErrorCode.NONE, [])
    assert at.leads("t", 0)[:2] == (2, 1)


@story
async def test_two_at_once_leave_to_the_third():
    at = await shutting_down()
    answer = await at.reign.shutdowns.shut_down(2, at.state.brokers[2].epoch)
    assert answer == (ErrorCode.NONE, [])
    assert at.leads("t", 0) == (3, 2, (3,))


@story
async def test_topics_that_go_are_left_alone():
    at = await Desk.with_topics({"t": [(1, 2)]})
    at.state.deleting["t"] = None
    assert (await at.reign.shutdowns.shut_down(1, -1)) == (ErrorCode.NONE, [])
    assert at.leads() == (1, 0, (1, 2))


@story
async def test_the_broker_is_as_any_other_when_it_is_back():
    at = await shutting_down()
    await at.goes(1)
    assert at.state.shutting_down == {}
    await at.comes(1)
    assert at.state.live == [1, 2, 3]
    assert T1 in at.state.leaderships
    assert TopicPartition("u", 0) in at.state.leaderships
