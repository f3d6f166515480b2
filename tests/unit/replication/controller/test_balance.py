"""When leaders return to their preferred replicas."""

from __future__ import annotations

from replication.controller.balance import misplaced
from tests.unit.replication.controller.desk import Desk, story


async def ten(elsewhere: int) -> Desk:
    """Ten partitions that prefer broker 1, of which some are led by broker 2."""
    at = await Desk.with_topics({"t": [(1, 2)] * 10})
    for partition in at.state.partitions_of("t")[:elsewhere]:
        at.state.leaderships[partition] = at.state.leaderships[partition].led_by(2)
    return at


@story
async def test_one_of_ten_stays_and_two_of_ten_move():
    at = await ten(1)
    assert misplaced(at.state, 10) == []
    at = await ten(2)
    assert misplaced(at.state, 10) == at.state.partitions_of("t")[:2]


@story
async def test_only_what_can_return_does():
    at = await ten(3)
    first, second, third = at.state.partitions_of("t")[:3]
    at.state.leaderships[second] = at.state.leaderships[second].led_by(2, (2,))
    at.state.offline_dirs[1] = {third: None}
    assert misplaced(at.state, 10) == [first]


@story
async def test_a_preferred_broker_that_is_away_moves_nothing():
    at = await ten(5)
    del at.state.brokers[1]
    assert misplaced(at.state, 10) == []


@story
async def test_topics_that_go_and_partitions_without_a_leader_yet_do_not_move():
    at = await ten(5)
    at.state.deleting["t"] = None
    assert misplaced(at.state, 10) == []
    at = await ten(2)
    del at.state.leaderships[at.state.partitions_of("t")[0]]
    assert misplaced(at.state, 10) == []


@story
async def test_a_partition_without_a_leader_counts_as_elsewhere():
    at = await ten(2)
    first = at.state.partitions_of("t")[0]
    at.state.leaderships[first] = at.state.leaderships[first].led_by(-1)
    assert misplaced(at.state, 10) == at.state.partitions_of("t")[:2]
