"""Appends to an internal topic within the turn: told in order, never early, and what a failed write does."""

import errno

import pytest

from broker.adapters.topic_writer import TopicWriter
from broker.net.turn import Turn
from coordinator.ports import AppendRefused
from protocol.errors import ErrorCode
from protocol.records.batch import batches, read_header
from protocol.records.keyed import keyed_batch
from replication.controller.outcomes import TopicToDelete
from replication.metadata.image import PartitionImage
from storage import roll
from tests.support.handler_broker import HandlerBroker

TOPIC = "__consumer_offsets"


class Topic:
    """A writer with its partitions, and what it told."""

    def __init__(self, broker):
        self.broker = broker
        env = broker.ctx.env
        self.turn = Turn(self, env.clock, lambda _: None)
        self.writer = TopicWriter(TOPIC, broker.ctx.replicas, self.turn)
        self.told = []

    def call_soon(self, callback):
        """The turn ends when a test says so."""

    def replica(self, partition=0):
        return self.broker.ctx.replicas.get(TOPIC, partition)

    def append(self, name, partition=0, epoch=0, count=1, size=1, then=None):
        def done(error):
            self.told.append((name, error.name))
            if then is not None:
                then(error)

        batch = keyed_batch([(b"k", b"v" * size)] * count, 1)
        return self.writer.append(partition, batch, epoch, done)

    def refused(self, *args, **more):
        with pytest.raises(AppendRefused) as raised:
            self.append("refused", *args, **more)
        return raised.value.error

    def fail_writes(self, monkeypatch, partition=0):
        handle = self.replica(partition).log.handle

        class Full:
            def __getattr__(self, name):
                return getattr(handle, name)

            def append(self, parts):
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(self.replica(partition).log, "handle", Full())

    def offsets(self, partition=0):
        log = self.replica(partition).log
        data = log.read(log.start_offset, 1 << 20, log.end_offset).to_bytes()
        return [read_header(data, at).base_offset for at, _ in batches(data)]

    def role(self, isr=(1,), replicas=(1,), leader=1, leader_epoch=0, partition_epoch=1):
        image = PartitionImage(0, leader, leader_epoch, partition_epoch, isr, replicas)
        self.replica().apply(image, 1)


@pytest.fixture
def topic(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        broker.create(TOPIC, 2)
        yield Topic(broker)


def test_an_append_knows_its_offset_at_once_and_is_told_after_the_write(topic):
    assert topic.append("a", count=3) == 0
    assert topic.append("b") == 3
    assert topic.told == []
    assert topic.replica().log.end_offset == 0
    topic.turn.finish()
    assert topic.told == [("a", "NONE"), ("b", "NONE")]
    assert topic.replica().log.high_watermark == 4
    assert topic.offsets() == [0, 3]


def test_readers_that_wait_for_the_partition_are_woken(topic):
    woken = []

    class Waiter:
        def wake(self):
            woken.append(topic.replica().log.high_watermark)

    topic.replica().waiters[Waiter()] = None
    topic.append("a")
    topic.turn.finish()
    assert woken == [1]


def test_what_a_callback_appends_waits_for_the_next_write(topic):
    topic.append("a", then=lambda _: topic.append("c"))
    topic.append("b")
    topic.turn.finish()
    assert topic.told == [("a", "NONE"), ("b", "NONE")]
    topic.turn.finish()
    assert topic.told[2:] == [("c", "NONE")]
    assert topic.offsets() == [0, 1, 2]


def test_a_coordinator_that_fails_is_logged_and_the_others_are_told(topic, caplog):
    def fails(_):
        raise AssertionError("a broken invariant")

    topic.append("a", then=fails)
    topic.append("b")
    topic.append("other", partition=1)
    topic.turn.finish()
    assert topic.told == [("a", "NONE"), ("b", "NONE"), ("other", "NONE")]
    [logged] = caplog.records
    assert f"offset 0 of {TOPIC}-0" in logged.getMessage()


def test_a_failed_write_is_told_to_all_it_took_along_and_the_log_goes_on(topic, monkeypatch):
    topic.append("before")
    topic.append("other", partition=1)
    topic.turn.finish()
    again = []
    with monkeypatch.context() as patch:
        topic.fail_writes(patch)
        topic.append("a", then=lambda _: again.append(topic.append("again")))
        topic.append("b", count=2)
        topic.append("there", partition=1)
        topic.turn.flush()
    assert topic.told[2:] == [
        ("a", "KAFKA_STORAGE_ERROR"),
        ("b", "KAFKA_STORAGE_ERROR"),
        ("there", "NONE"),
    ]
    assert again == [1]  # the offset of what failed is given out anew
    topic.turn.finish()
    assert topic.told[5:] == [("again", "NONE")]
    assert topic.offsets() == [0, 1]


def test_after_a_failed_roll_nothing_is_appended_until_those_that_failed_were_told(topic, monkeypatch):
    """The roll writes what is staged, and its failure takes offsets back in the middle of a turn."""
    topic.append("before")
    topic.turn.finish()
    with monkeypatch.context() as patch:
        topic.fail_writes(patch)
        topic.append("a")
        roll.before_next(topic.replica().log)
        assert topic.refused() == ErrorCode.KAFKA_STORAGE_ERROR
    assert topic.told == [("before", "NONE")]
    assert topic.refused() == ErrorCode.KAFKA_STORAGE_ERROR
    topic.turn.finish()
    assert topic.told == [("before", "NONE"), ("a", "KAFKA_STORAGE_ERROR")]
    assert topic.append("b") == 1
    topic.turn.finish()
    assert topic.told[2:] == [("b", "NONE")]


def test_with_more_replicas_the_high_watermark_decides(topic):
    topic.role(isr=(1, 2), replicas=(1, 2))
    replica = topic.replica()
    topic.append("a")
    topic.append("b", count=2)
    topic.turn.finish()
    topic.append("c")
    topic.turn.finish()
    assert topic.told == []
    assert len(replica.waiters) == 1
    replica.log.set_high_watermark(1)
    replica.wake()
    assert topic.told == [("a", "NONE")]
    replica.log.set_high_watermark(2)  # within the batch
    replica.wake()
    assert len(topic.told) == 1
    replica.log.set_high_watermark(4)
    replica.wake()
    assert topic.told[1:] == [("b", "NONE"), ("c", "NONE")]
    assert not replica.waiters


def test_a_failed_write_leaves_earlier_batches_that_wait_for_replicas(topic, monkeypatch):
    topic.role(isr=(1, 2), replicas=(1, 2))
    topic.append("a")
    topic.turn.finish()
    with monkeypatch.context() as patch:
        topic.fail_writes(patch)
        topic.append("b")
        topic.turn.finish()
    assert topic.told == [("b", "KAFKA_STORAGE_ERROR")]
    assert topic.append("c") == 1
    topic.turn.finish()
    topic.replica().log.set_high_watermark(2)
    topic.replica().wake()
    assert topic.told[1:] == [("a", "NONE"), ("c", "NONE")]


def test_who_loses_the_leadership_is_told_so(topic):
    topic.role(isr=(1, 2), replicas=(1, 2))
    topic.append("a")
    topic.turn.finish()
    topic.append("staged")
    topic.role(isr=(1, 2), replicas=(1, 2), leader=2, leader_epoch=1, partition_epoch=2)
    assert topic.told == [("a", "NOT_LEADER_OR_FOLLOWER")]
    topic.turn.finish()
    assert topic.told[1:] == [("staged", "NOT_LEADER_OR_FOLLOWER")]


def test_refusals(topic):
    assert topic.refused(partition=2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic.refused(epoch=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert topic.refused(size=1_048_588) == ErrorCode.MESSAGE_TOO_LARGE
    topic.role(isr=(1,), replicas=(1, 2), leader=2)
    assert topic.refused() == ErrorCode.NOT_LEADER_OR_FOLLOWER
    topic.turn.finish()
    assert topic.told == []
    assert topic.replica().log.end_offset == 0


def test_too_few_replicas_and_a_failed_disk_refuse(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        broker.create(TOPIC, 1, {"min.insync.replicas": "2"})
        topic = Topic(broker)
        topic.role(isr=(1,), replicas=(1, 2))
        assert topic.refused() == ErrorCode.NOT_ENOUGH_REPLICAS
        topic.role(isr=(1, 2), replicas=(1, 2), partition_epoch=2)
        topic.replica().log.directory.fail(OSError(5, "Input/output error"))
        assert topic.refused() == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_topic_that_was_deleted_and_made_again_begins_anew(topic):
    topic.append("a")
    topic.turn.finish()
    topic.append("staged")
    topic.broker.runner.run(delete(topic.broker))
    topic.turn.finish()
    assert topic.told == [("a", "NONE"), ("staged", "KAFKA_STORAGE_ERROR")]
    topic.broker.create(TOPIC, 1)
    assert topic.append("b") == 0
    topic.turn.finish()
    assert topic.told[2:] == [("b", "NONE")]


async def delete(broker):
    [outcome] = await broker.ctx.controller.delete_topics([TopicToDelete(TOPIC)], timeout_ms=60_000)
    assert outcome.error == ErrorCode.NONE
