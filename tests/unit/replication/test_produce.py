"""Appending to several partitions in one turn."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.delayed_produce import ProducePurgatory
from replication.metadata.image import PartitionImage
from replication.produce import append
from storage.errors import StorageFailed
from tests.support.logs import batch, checked
from tests.unit.replication.cluster import on_broker
from tests.unit.replication.test_purgatory import Clockwork


class Turn:
    """The end of a turn comes when the test says so."""

    def __init__(self):
        self.staged, self.after, self.now_ms = {}, [], 5000

    def open(self):
        return self.now_ms

    def stage(self, partition):
        self.staged[partition] = None

    def after_write(self, callback):
        self.after.append(callback)

    def end(self):
        for partition in self.staged:
            try:
                partition.write_pending()
            except StorageFailed:
                continue
        after, self.after = self.after, []
        for callback in after:
            callback()
        self.staged.clear()


class Producer:
    def __init__(self, broker):
        self.broker, self.turn, self.clockwork = broker, Turn(), Clockwork()
        self.purgatory = ProducePurgatory(self.clockwork)
        self.answers = []

    def send(self, *indexes, acks=-1, timeout=100, size=20):
        batches = [(self.broker.replicas.get("t", index), checked(batch(2, size=size))) for index in indexes]
        append(self.turn, batches, acks, timeout, self.purgatory, self.answers.append)

    def seen(self):
        return [
            [(r.partition.index, r.error, r.base_offset, r.last_offset) for r in answer]
            for answer in self.answers
        ]


def on_producer(story, **configs):
    async def main(broker):
        await broker.create("t", 3, **configs)
        story(broker, Producer(broker))

    on_broker(main)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_an_isr_of_one_is_answered_with_the_turn(acks):
    def story(broker, producer):
        producer.send(0, 2, acks=acks)
        producer.send(0, acks=acks)
        assert producer.answers == []
        assert broker.replicas.get("t", 0).log.high_watermark == 0
        producer.turn.end()
        assert producer.seen() == [
            [(0, ErrorCode.NONE, 0, 1), (2, ErrorCode.NONE, 0, 1)],
            [(0, ErrorCode.NONE, 2, 3)],
        ]
        assert broker.replicas.get("t", 0).log.high_watermark == 4
        assert producer.purgatory.delayed == 0

    on_producer(story)


def test_partitions_are_independent():
    def story(broker, producer):
        broker.replicas.get("t", 1).apply(PartitionImage(1, 2, 1, 1, (2,), (1, 2)), 1)
        broker.replicas.get("t", 2).apply(PartitionImage(2, 1, 0, 1, (1,), (1, 2)), 1)
        broker.replicas.get("t", 2).log.config.min_insync_replicas = 2
        broker.replicas.get("t", 0).log.config.min_insync_replicas = 2
        producer.send(0, 1, 2)
        producer.turn.end()
        assert producer.seen() == [
            [
                (0, ErrorCode.NONE, 0, 1),
                (1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1),
                (2, ErrorCode.NOT_ENOUGH_REPLICAS, -1, -1),
            ]
        ]

    on_producer(story)


def test_refusals_alone_are_answered_at_once():
    def story(broker, producer):
        broker.replicas.get("t", 1).apply(PartitionImage(1, 2, 1, 1, (2,), (1, 2)), 1)
        producer.send(1, acks=1)
        assert producer.seen() == [[(1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)]]
        assert producer.turn.after == []

    on_producer(story)


def test_a_failed_write_fails_its_batches_and_no_others():
    def story(broker, producer):
        producer.send(0, 1)
        producer.send(1)
        broker.files.fail_next("append", 28, "t-1")
        producer.turn.end()
        assert producer.seen() == [
            [(0, ErrorCode.NONE, 0, 1), (1, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)],
            [(1, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1)],
        ]
        producer.send(1)
        producer.turn.end()
        assert producer.seen()[2] == [(1, ErrorCode.NONE, 0, 1)]

    on_producer(story)


def test_a_write_that_fails_when_a_segment_is_rolled_fails_what_was_staged_before():
    def story(broker, producer):
        producer.send(0, size=60)
        broker.files.fail_next("append", 28, "t-0")
        producer.send(0, size=60)
        producer.send(0, size=20)
        producer.turn.end()
        errors = [answer[0].error for answer in producer.answers]
        assert sorted(errors) == [ErrorCode.NONE, *[ErrorCode.KAFKA_STORAGE_ERROR] * 2]
        assert broker.replicas.get("t", 0).log.end_offset == 2

    on_producer(story, good_segment_bytes=250)
