"""Rounds of one fetcher, and the task that makes them."""

from __future__ import annotations

import asyncio

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.fetcher import FIRST_PAUSE_MS, HURRY_MS
from replication.metadata.configs import ConfigResource, ConfigType
from runtime.pieces import at_once
from tests.unit.replication.cluster.stage import BACKOFF_MS, TOPIC, TOPIC_ID, Stage, until


def pair(partitions=1, **config):
    """Node 1 leads all partitions, node 2 follows."""
    stage = Stage(2, partitions, **config)
    for index in range(partitions):
        stage.lead(1, index=index, is_new=True)
    return stage, stage[2].copying.fetchers[1]


def named(request):
    return [each.partition for topic in request.topics for each in topic.partitions]


def forgotten(request):
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def answer(*rows, error=0, session_id=9):
    topic = m.FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=list(rows))
    return m.FetchResponse(responses=[topic] if rows else [], error_code=error, session_id=session_id)


def row(index=0, error=0, **fields):
    return m.FetchResponse.PartitionData(partition_index=index, error_code=error, **fields)


def test_a_round_costs_what_is_in_it():
    _stage, fetcher = pair(partitions=5)
    assert named(fetcher.build()) == [0, 1, 2, 3, 4]
    at_once(fetcher.take(answer()))
    assert named(fetcher.build()) == []
    at_once(fetcher.take(answer(row(3))))
    assert list(fetcher._changed) == [(TOPIC, 3)]


def test_an_error_holds_one_partition_back():
    stage, fetcher = pair(partitions=2)
    fetcher.build()
    at_once(fetcher.take(answer(row(1, ErrorCode.UNKNOWN_LEADER_EPOCH))))
    assert forgotten(fetcher.build()) == [1]
    at_once(fetcher.take(answer()))
    stage.clock.ms += FIRST_PAUSE_MS - 1
    assert named(fetcher.build()) == []
    at_once(fetcher.take(answer()))
    stage.clock.ms += 1
    assert named(fetcher.build()) == [1]


def test_a_refusal_that_repeats_holds_it_back_for_longer_up_to_the_limit_until_it_is_served():
    stage, fetcher = pair(partitions=2)
    fetcher.build()
    pauses = []
    for _ in range(12):
        at_once(fetcher.take(answer(row(1, ErrorCode.NOT_LEADER_OR_FOLLOWER))))
        pauses.append(fetcher.get((TOPIC, 1)).delayed_until_ms - stage.clock.ms)
        stage.clock.ms += pauses[-1]
        fetcher.build()
    assert pauses[:3] == [FIRST_PAUSE_MS, 2 * FIRST_PAUSE_MS, 4 * FIRST_PAUSE_MS]
    assert pauses[-1] == max(pauses) == BACKOFF_MS
    at_once(fetcher.take(answer(row(1))))
    fetcher.build()
    at_once(fetcher.take(answer(row(1, ErrorCode.NOT_LEADER_OR_FOLLOWER))))
    assert fetcher.get((TOPIC, 1)).delayed_until_ms - stage.clock.ms == FIRST_PAUSE_MS


def test_while_all_are_held_back_nothing_is_asked():
    _stage, fetcher = pair()
    fetcher.build()
    at_once(fetcher.take(answer(row(0, ErrorCode.NOT_LEADER_OR_FOLLOWER))))
    assert fetcher.build() is None


def test_a_failed_partition_waits_for_a_new_leader_and_isr():
    stage, fetcher = pair(partitions=2)
    fetcher.build()
    at_once(fetcher.take(answer(row(0, ErrorCode.FENCED_LEADER_EPOCH))))
    assert list(fetcher.failed) == [(TOPIC, 0)]
    assert forgotten(fetcher.build()) == [0]
    at_once(fetcher.take(answer()))
    stage.clock.ms += 10 * BACKOFF_MS
    assert named(fetcher.build()) == []
    at_once(fetcher.take(answer()))
    stage.lead(1, index=0)
    assert fetcher.failed == {}
    assert named(fetcher.build()) == [0]


def test_a_row_for_an_epoch_that_is_over_is_thrown_away():
    stage, fetcher = pair()
    fetcher.build()
    stage.lead(1)
    at_once(fetcher.take(answer(row(0, ErrorCode.FENCED_LEADER_EPOCH))))
    assert fetcher.failed == {}
    assert fetcher.get((TOPIC, 0)).leader_epoch == 1


def test_rows_of_strangers_are_passed_over():
    _stage, fetcher = pair()
    fetcher.build()
    other = m.FetchResponse.FetchableTopicResponse(topic_id=bytes(16), partitions=[row(0)])
    at_once(fetcher.take(m.FetchResponse(responses=[other], session_id=9)))
    fetcher.build()
    at_once(fetcher.take(answer(row(7))))


def test_many_rows_come_in_pieces_and_roles_may_change_between_them():
    stage, fetcher = pair(partitions=60)
    request = fetcher.build()
    for index in range(60):
        stage[1].produce(index=index)
    steps = fetcher.take(stage[1].serve(request))
    next(steps)
    assert [stage[2].partition(index).log.end_offset for index in (24, 25)] == [1, 0]
    stage.lead(2, index=50)
    at_once(steps)
    assert [stage[2].partition(index).log.end_offset for index in (49, 50, 51)] == [1, 0, 1]


def test_without_an_answer_all_back_off_and_the_session_begins_anew():
    stage, fetcher = pair(partitions=2)
    fetcher.build()
    at_once(fetcher.take(answer()))
    fetcher.build()
    fetcher.lost()
    assert fetcher.build() is None
    stage.clock.ms += BACKOFF_MS
    request = fetcher.build()
    assert (request.session_id, request.session_epoch, named(request)) == (9, 0, [0, 1])


@pytest.mark.parametrize(
    ("error", "goes_on"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, True),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
    ],
)
def test_a_lost_session_is_no_reason_to_wait_and_other_refusals_are(error, goes_on):
    _stage, fetcher = pair()
    fetcher.build()
    at_once(fetcher.take(answer()))
    fetcher.build()
    at_once(fetcher.take(answer(error=error, session_id=0)))
    assert (fetcher.build() is not None) == goes_on


def test_a_newcomer_does_not_wait_for_a_parked_request():
    stage, fetcher = pair(partitions=2)
    timer, channel = stage[2].timer, fetcher._channel
    request = fetcher.build()
    stage.lead(1, index=1)
    timer.advance(HURRY_MS + 1)
    assert channel.aborted == 1
    fetcher.lost()  # what the abort leads to
    request = fetcher.build()
    assert named(request) == [0, 1]


def test_an_answer_in_time_is_not_given_up():
    stage, fetcher = pair(partitions=2)
    fetcher.build()
    stage.lead(1, index=1)
    at_once(fetcher.take(answer()))
    fetcher.build()
    stage[2].timer.advance(HURRY_MS + 1)
    assert fetcher._channel.aborted == 0


def test_a_throttled_partition_that_is_not_in_sync_waits_for_the_quota():
    stage, fetcher = pair(partitions=2)
    node = stage[2]
    resource = ConfigResource(ConfigType.TOPIC, TOPIC)
    configs = {resource: {"follower.replication.throttled.replicas": "0:2"}}
    node.holder.publish(node.holder.current.with_configs(configs))
    node.quota.limit = 100
    for index in (0, 1):
        for _ in range(3):
            stage[1].produce(5, size=400, index=index)
    fetcher._settings = type(node.fetching)(node.fetching.identity)
    node.fetch()
    assert node.partition(0).log.end_offset == 15
    stage[1].produce(5, size=400, index=0)
    stage[1].produce(5, size=400, index=1)
    fetcher.get((TOPIC, 0)).lag = 5  # it is out of sync
    request = fetcher.build()
    assert forgotten(request) == [0]
    stage.clock.ms += 100_000
    at_once(fetcher.take(answer()))
    assert named(fetcher.build()) == [0]


def test_a_partition_with_records_goes_to_the_end():
    stage, fetcher = pair(partitions=3)
    stage[2].fetch()
    stage[1].produce(index=0)
    stage[2].fetch()
    assert [key[1] for key in fetcher._partitions] == [1, 2, 0]


class Leader:
    """A channel whose answers the test gives."""

    def __init__(self, node):
        self.node, self.asked, self.broken = node, 0, False
        self.gate = asyncio.Event()

    async def ask(self, request, version=None):
        assert version == 17
        self.asked += 1
        if self.broken:
            raise ChannelLost("gone")
        if self.asked > 3:
            await self.gate.wait()
        return self.node.serve(request)

    def abort(self):
        self.broken = True
        self.gate.set()

    async def close(self):
        pass


def test_the_task_copies_until_it_is_stopped():
    async def main():
        stage, fetcher = pair()
        stage[1].produce(4)
        fetcher._channel = Leader(stage[1])
        task = asyncio.get_running_loop().create_task(fetcher.run())
        await until(lambda: fetcher._channel.asked >= 4)
        assert stage[2].log.end_offset == 4
        fetcher.stop()
        fetcher._channel.abort()
        await task

    asyncio.run(main())


def test_the_task_waits_while_there_is_nothing_to_ask_and_wakes_for_a_newcomer():
    async def main():
        stage, fetcher = pair()
        leader = fetcher._channel = Leader(stage[1])
        leader.broken = True
        task = asyncio.get_running_loop().create_task(fetcher.run())
        await until(lambda: leader.asked >= 1)
        for _ in range(5):
            await asyncio.sleep(0)
        assert leader.asked == 1
        stage.lead(1)
        await until(lambda: leader.asked >= 2)
        fetcher.stop()
        await task

    asyncio.run(main())


def test_what_has_to_be_synced_is_so_before_the_next_request_acknowledges_it():
    stage = Stage(2, 1, flush_messages=1)
    jobs = []
    stage[2].logs.on_flush_job(jobs.append)
    stage.lead(1, is_new=True)
    stage[1].produce(2)
    fetcher = stage[2].copying.fetchers[1]

    async def story():
        fetcher._channel = Leader(stage[1])
        task = asyncio.get_running_loop().create_task(fetcher.run())
        await until(lambda: jobs)
        for _ in range(20):
            await asyncio.sleep(0)
        assert stage[1].partition().leadership.followers[2].end_offset == 0
        while jobs:
            job = jobs.pop()
            job.run()
            job.finish()
        await until(lambda: stage[1].partition().leadership.followers[2].end_offset == 2)
        assert stage[2].log.recovery_point == 2
        fetcher.stop()
        fetcher._channel.abort()
        await task

    asyncio.run(story())
