"""Asking the controller for other ISRs."""

from __future__ import annotations

import asyncio

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.alter_partition import AlterPartitions, AlterSettings
from replication.cluster.channel import ChannelLost
from replication.leadership import LeaderContext
from replication.partition import Partition
from replication.roles import become_leader
from tests.simulation.files import SimFileSystem
from tests.support.logs import open_manager
from tests.unit.replication.cluster.stage import until
from tests.unit.replication.leading import state

R, A = m.AlterPartitionRequest, m.AlterPartitionResponse
IDS = {"a": bytes(range(16)), "b": bytes(range(1, 17))}


class Controller:
    """Keeps requests; answers by `answers`, then by success."""

    def __init__(self):
        self.requests, self.answers, self.id, self.dialled, self.closed = [], [], 9, [], 0

    def to(self, broker_id, purpose):
        assert purpose == "alter-partition"
        self.dialled.append(broker_id)
        return self

    async def ask(self, request, version=None):
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else ErrorCode.NONE
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            return answer(request)
        if isinstance(answer, m.AlterPartitionResponse):
            return answer
        return self.verdict(request, answer)

    def verdict(self, request, error, top=0):
        return A(
            error_code=top,
            topics=[
                A.TopicData(
                    topic_id=topic.topic_id,
                    topic_name=topic.topic_name,
                    partitions=[
                        A.PartitionData(
                            partition_index=each.partition_index,
                            error_code=error,
                            leader_epoch=each.leader_epoch,
                            partition_epoch=each.partition_epoch + 1,
                            isr=[b.broker_id for b in each.new_isr_with_epochs] or each.new_isr,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )

    async def close(self):
        self.closed += 1


class Broker:
    """Broker 1 leads partitions of which followers may join."""

    def __init__(self, version=3):
        self.controller = Controller()
        self.alter = AlterPartitions(
            AlterSettings(1, version, retry_s=0), self.controller, lambda: self.controller.id, lambda: 77
        )
        self.context = LeaderContext(1, 30_000, lambda: 10**6, lambda _: True, self.alter.propose)
        self.logs = open_manager(SimFileSystem())

    def lead(self, topic="a", index=0, isr=(1,), **fields):
        log = self.logs.get_or_create(topic, index, IDS[topic])
        partition = Partition(topic, index, IDS[topic], log)
        become_leader(partition, state(isr=isr, **fields), self.context)
        return partition

    def send(self):
        return asyncio.run(self.alter.send())


def join(partition, broker_id=2, epoch=50):
    partition.leadership.fetched(broker_id, 0, 0, 0, broker_epoch=epoch)


def test_a_request_tells_the_isr_with_registrations_and_the_state_it_builds_on():
    broker = Broker()
    partition = broker.lead(epoch=4, version=6)
    join(partition)
    assert broker.send()
    [request] = broker.controller.requests
    assert (request.broker_id, request.broker_epoch) == (1, 77)
    [topic] = request.topics
    assert (topic.topic_id, topic.topic_name) == (IDS["a"], "")
    [told] = topic.partitions
    assert (told.partition_index, told.leader_epoch, told.partition_epoch) == (0, 4, 6)
    assert [(each.broker_id, each.broker_epoch) for each in told.new_isr_with_epochs] == [(1, -1), (2, 50)]
    assert (told.new_isr, told.leader_recovery_state) == ([], 0)
    assert (partition.isr, partition.partition_epoch) == ((1, 2), 7)
    request.encode(3)


def test_older_versions_name_topics_and_brokers_only():
    broker = Broker(version=1)
    partition = broker.lead()
    join(partition)
    broker.send()
    [topic] = broker.controller.requests[0].topics
    assert (topic.topic_name, topic.partitions[0].new_isr) == ("a", [1, 2])
    broker.controller.requests[0].encode(1)
    assert partition.isr == (1, 2)


def test_all_that_waits_goes_in_one_request():
    broker = Broker()
    partitions = [broker.lead("a", 0), broker.lead("a", 1), broker.lead("b", 0)]
    for partition in partitions:
        join(partition)
    broker.send()
    [request] = broker.controller.requests
    assert [len(topic.partitions) for topic in request.topics] == [2, 1]
    assert all(partition.isr == (1, 2) for partition in partitions)
    assert broker.send()
    assert len(broker.controller.requests) == 1


def test_what_a_newer_leadership_made_void_is_not_sent():
    broker = Broker()
    partition = broker.lead()
    join(partition)
    become_leader(partition, state(epoch=1, version=1, isr=(1,)), broker.context)
    assert broker.send()
    assert broker.controller.requests == []


def test_a_change_that_comes_while_one_is_in_flight_waits_for_it():
    broker = Broker()
    partition = broker.lead()
    join(partition)

    def overtaken(request):
        assert len(broker.controller.requests) == 1
        become_leader(partition, state(epoch=1, version=5, isr=(1,)), broker.context)
        join(partition, 3)
        return broker.controller.verdict(request, ErrorCode.NONE)

    broker.controller.answers = [overtaken]
    broker.send()
    assert (partition.isr, partition.partition_epoch) == ((1,), 5)
    broker.send()
    assert partition.isr == (1, 3)


@pytest.mark.parametrize(
    "answer",
    [
        ChannelLost("gone"),
        A(error_code=ErrorCode.STALE_BROKER_EPOCH),
        A(error_code=ErrorCode.NOT_CONTROLLER),
        ErrorCode.NOT_CONTROLLER,
        A(),  # without the partition
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_decides_nothing_is_sent_again(answer):
    broker = Broker()
    partition = broker.lead()
    join(partition)
    broker.controller.answers = [answer]
    assert not broker.send()
    assert partition.leadership.pending is not None
    assert broker.send()
    assert partition.isr == (1, 2)
    assert len(broker.controller.requests) == 2


@pytest.mark.parametrize("answer", [A(error_code=ErrorCode.NOT_CONTROLLER), ErrorCode.NOT_CONTROLLER])
def test_a_broker_that_is_not_the_controller_is_left(answer):
    broker = Broker()
    join(broker.lead())
    broker.controller.answers = [answer]
    broker.send()
    assert broker.controller.closed == 1
    broker.controller.id = 8
    broker.send()
    assert broker.controller.dialled == [9, 8]


def test_a_new_controller_is_asked_over_a_new_connection():
    broker = Broker()
    join(broker.lead("a", 0))
    broker.send()
    broker.controller.id = 5
    join(broker.lead("a", 1))
    broker.send()
    assert broker.controller.dialled == [9, 5]
    assert broker.controller.closed == 1


def test_without_a_controller_it_waits():
    broker = Broker()
    partition = broker.lead()
    join(partition)
    broker.controller.id = -1
    assert not broker.send()
    assert broker.controller.requests == []
    broker.controller.id = 9
    broker.send()
    assert partition.isr == (1, 2)


def test_a_refusal_for_good_is_not_repeated():
    broker = Broker()
    partition = broker.lead()
    join(partition)
    broker.controller.answers = [ErrorCode.FENCED_LEADER_EPOCH]
    assert broker.send()
    assert broker.send()
    assert len(broker.controller.requests) == 1
    assert partition.leadership.pending is not None


def test_the_task_sends_what_comes_and_goes_on_after_failures():
    async def main():
        broker = Broker()
        task = asyncio.get_running_loop().create_task(broker.alter.run())
        await asyncio.sleep(0)
        partition = broker.lead()
        broker.controller.answers = [ChannelLost("gone"), ErrorCode.NOT_CONTROLLER]
        join(partition)
        await until(lambda: partition.isr == (1, 2))
        join(partition, 3)
        await until(lambda: partition.isr == (1, 2, 3))
        task.cancel()
        await asyncio.wait([task])
        assert broker.controller.closed == 2

    asyncio.run(main())
