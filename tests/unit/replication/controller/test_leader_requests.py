"""Elections that somebody asks for."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.controller.cluster_state import TopicPartition
from replication.controller.leader_requests import ElectionType
from replication.metadata import controller_payloads, paths
from replication.metadata.store import Create
from tests.unit.replication.controller.desk import T0, T1, Desk, story

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN
U0 = TopicPartition("u", 0)


async def elsewhere() -> Desk:
    """Broker 1 is preferred by both partitions and leads neither; for the second it is not in sync."""
    at = await Desk.with_topics({"t": [(1, 2), (1, 2)], "u": [(2, 1)]})
    await at.goes(1)
    await at.comes(1)
    await at.in_sync(2, 1)
    at.told()
    return at


def codes(outcomes):
    return {partition: error for partition, (error, _) in outcomes.items()}


@story
async def test_preferred_leaders_are_elected_where_they_can():
    at = await elsewhere()
    outcomes = await at.reign.leaders.elect([T0, T1, U0, T0], PREFERRED)
    assert codes(outcomes) == {
        T0: ErrorCode.NONE,
        T1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        U0: ErrorCode.ELECTION_NOT_NEEDED,
    }
    assert at.leads("t", 0) == (1, 2, (2, 1))
    assert at.leads("t", 1) == (2, 1, (2,))
    assert at.told()[:2] == ["LISR 1 t-0 leader 1/2 isr 2,1", "LISR 2 t-0 leader 1/2 isr 2,1"]


@story
async def test_unclean_leaders_are_elected_where_nobody_leads():
    at = await Desk.with_topics({"t": [(1, 2), (3, 2)], "u": [(1,)]})
    await at.goes(2)
    await at.goes(1)
    await at.comes(2)
    outcomes = await at.reign.leaders.elect([T0, T1, U0], UNCLEAN)
    assert codes(outcomes) == {
        T0: ErrorCode.NONE,
        T1: ErrorCode.ELECTION_NOT_NEEDED,
        U0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
    assert at.leads("t", 0) == (2, 3, (2,))
    assert at.stored("t", 0).recovering


@story
async def test_unknown_and_deleted_ones_say_so():
    at = await elsewhere()
    at.state.deleting["u"] = None
    outcomes = await at.reign.leaders.elect([U0, TopicPartition("x", 0), TopicPartition("t", 9)], PREFERRED)
    assert outcomes == {
        U0: (ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted"),
        TopicPartition("x", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such topic as x"),
        TopicPartition("t", 9): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-9"),
    }


@story
async def test_a_partition_without_its_first_leader_has_no_preferred_one():
    at = await Desk.with_topics()
    await at.add_topic("t", [(9,)])
    await at.reign.topics.on_topics()
    assert codes(await at.reign.leaders.elect([T0], PREFERRED)) == {
        T0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    }
    assert codes(await at.reign.leaders.elect([T0], UNCLEAN)) == {
        T0: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    }


@story
async def test_the_node_of_tools_is_done_and_taken_away():
    at = await elsewhere()
    value = controller_payloads.encode_partitions([T0, ("nobody", 1)])
    await at.store.multi([Create(paths.PREFERRED_ELECTION, value)])
    await at.reign.leaders.on_legacy_node()
    assert at.leads("t", 0)[0] == 1
    assert not at.exists(paths.PREFERRED_ELECTION)
    await at.reign.leaders.on_legacy_node()


@story
async def test_a_damaged_node_is_taken_away():
    at = await elsewhere()
    await at.store.multi([Create(paths.PREFERRED_ELECTION, b"{}")])
    await at.reign.leaders.on_legacy_node()
    assert not at.exists(paths.PREFERRED_ELECTION)
    assert at.leads("t", 0)[0] == 2


@story
async def test_the_next_controller_does_what_tools_asked_for():
    at = await elsewhere()
    await at.store.multi([Create(paths.PREFERRED_ELECTION, controller_payloads.encode_partitions([T0]))])
    await at.next_epoch()
    assert at.leads("t", 0)[0] == 1


@story
async def test_leaders_return_when_too_many_are_elsewhere():
    at = await elsewhere()
    await at.reign.leaders.balance()
    assert at.leads("t", 0) == (1, 2, (2, 1))
    assert at.leads("t", 1) == (2, 1, (2,))
    at.told()
    await at.reign.leaders.balance()
    assert at.told() == []
