"""An internal topic read back from the logs of this broker."""

import pytest

from broker.adapters.topic_reader import TopicReader
from coordinator.ports import ReadFailed
from protocol.records.batch import batches, read_header
from tests.support.handler_broker import HandlerBroker

TOPIC = "__consumer_offsets"


@pytest.fixture
def broker(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        broker.create(TOPIC, 2)
        yield broker


def read(broker, reader, offset, max_bytes=1 << 20, partition=0):
    data = broker.runner.run(reader.read(partition, offset, max_bytes))
    return [read_header(data, at).base_offset for at, _ in batches(data)]


def reader_of(broker):
    return TopicReader(TOPIC, broker.ctx.env, broker.ctx.replicas)


def test_bounds_are_those_of_the_log(broker):
    reader = reader_of(broker)
    assert reader.bounds(0) == (0, 0)
    broker.produce(TOPIC, 0, [(1, b"a"), (2, b"b")])
    broker.produce(TOPIC, 0, [(3, b"c")])
    assert reader.bounds(0) == (0, 3)
    broker.ctx.replicas.get(TOPIC, 0).delete_records(2)
    assert reader.bounds(0) == (2, 3)
    assert reader.bounds(1) == (0, 0)


def test_whole_batches_come_from_the_one_that_holds_the_offset(broker):
    for number in range(5):
        broker.produce(TOPIC, 0, [(number, b"x" * 100), (number, b"y" * 100)])
    reader = reader_of(broker)
    assert read(broker, reader, 3) == [2, 4, 6, 8]
    assert read(broker, reader, 3, max_bytes=600) == [2, 4]
    assert read(broker, reader, 3, max_bytes=1) == [2]
    assert read(broker, reader, 10) == []


def test_what_lies_in_files_is_read_by_a_thread(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        broker.create(TOPIC, 1)
        for number in range(20):
            broker.produce(TOPIC, 0, [(number, bytes([number]) * 4000)])
        tree = broker.tree
    with HandlerBroker(tmp_path, tree=tree) as broker:
        submitted = []
        blocking = broker.ctx.env.blocking
        submit = blocking.submit
        blocking.submit = lambda function, *args: submitted.append(function) or submit(function, *args)
        assert read(broker, reader_of(broker), 0) == list(range(20))
        assert len(submitted) == 1


def test_a_partition_that_is_not_here_cannot_be_read(broker):
    reader = reader_of(broker)
    with pytest.raises(ReadFailed):
        reader.bounds(7)
    with pytest.raises(ReadFailed):
        read(broker, reader, 0, partition=7)


def test_offsets_outside_the_log_and_failed_disks_are_failed_reads(broker, monkeypatch):
    reader = reader_of(broker)
    broker.produce(TOPIC, 0, [(1, b"a")])
    with pytest.raises(ReadFailed, match=f"{TOPIC}-0 at offset 5"):
        read(broker, reader, 5)
    log = broker.ctx.replicas.get(TOPIC, 0).log
    log.directory.fail(OSError(5, "Input/output error"))
    with pytest.raises(ReadFailed):
        read(broker, reader, 0)
