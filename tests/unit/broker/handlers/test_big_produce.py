"""Big produces: the answers of the ordinary way, batches in order, and one place for each in the log."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest

from broker.handlers import big_produce, produce
from broker.handlers.big_produce import BigProduce
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.records.batch import Record, batches, records
from protocol.records.builder import build_batch
from protocol.records.legacy import build_message_set
from runtime.blocking import BlockingBusy
from storage.errors import StorageFailed
from tests.support.net_broker import NetBroker, decode, fetch_request, frame, produce_request
from tests.support.random_messages import at_version

IDS_FROM, BATCHES_FROM = 13, 3


@pytest.fixture(autouse=True)
def one_at_once(monkeypatch):
    """Batches are staged two at a time."""
    monkeypatch.setattr(big_produce, "STAGED_AT_ONCE", 2)


@contextmanager
def running(path):
    with NetBroker(path) as made:
        made.topic_id = made.create("orders", 3).topic_id
        yield made


@pytest.fixture
def net(tmp_path):
    with running(tmp_path) as made:
        yield made


@contextmanager
def everything_is_big():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(produce, "FEW_ELEMENTS", 0)
        yield


async def until(condition):
    async with asyncio.timeout(60):
        for _ in iter(condition, True):
            await asyncio.sleep(0)


def batch(value, **fields):
    return build_batch([Record(0, 1_700_000_000_000, None, value)], **fields)


def several(net, version, acks=1):
    """Partitions that are right, wrong, unknown, and named twice."""
    if version >= BATCHES_FROM:
        bad = bytearray(batch(b"broken"))
        bad[-1] ^= 1
        data = [batch(b"a"), batch(b"b"), bytes(bad), batch(b"c"), None, b"short", batch(b"d")]
    else:
        magic = 0 if version < 2 else 1
        data = [build_message_set([Record(0, 5, None, bytes([i]))], magic=magic) for i in b"abcdefg"]
        data[4], data[5] = None, b"short"
    places = zip((0, 1, 2, 0, 1, 2, 9), data, strict=True)
    request = m.ProduceRequest
    by_id = version >= IDS_FROM
    return request(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            request.TopicProduceData(
                name="" if by_id else "orders",
                topic_id=net.topic_id if by_id else bytes(16),
                partition_data=[request.PartitionProduceData(index=i, records=d) for i, d in places],
            ),
            request.TopicProduceData(
                name="" if by_id else "none",
                topic_id=bytes(15) + b"\1" if by_id else bytes(16),
                partition_data=[request.PartitionProduceData(index=0, records=data[0])],
            ),
        ],
    )


def sent(net, client, data):
    """Send, and wait until nothing is waited for any more."""

    async def send():
        client.send(data)
        await until(lambda: client.connection.waiting is None or client.connection.closed)

    net.run(send())


def values_in(net, partition):
    client = net.connect()
    data = client.call(fetch_request("orders", {partition: 0}), 12).responses[0].partitions[0].records
    return [record.value for at, _ in batches(data or b"") for record in records(data, at)]


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("acks", [1, -1])
def test_the_answer_and_the_logs_are_those_of_the_ordinary_way(tmp_path, version, acks):
    told = []
    for way in ("ordinary", "big"):
        with running(tmp_path / way) as net:
            client = net.connect()
            request = frame(at_version(several(net, version, acks), version), version, 7)
            if way == "big":
                with everything_is_big():
                    sent(net, client, request)
            else:
                sent(net, client, request)
                net.end_turn()
            [(correlation_id, data)] = client.answers()
            answer = decode(ApiKey.PRODUCE, version, data)
            answer.responses[0].topic_id = bytes(16)
            told.append((correlation_id, answer, [values_in(net, index) for index in range(3)]))
            assert net.ctx.big_bodies._inside == 0
    ordinary, big = told
    assert big == ordinary
    assert [len(values) for values in big[2]] == [2, 1, 0 if version >= BATCHES_FROM else 1]


def test_what_is_behind_waits_and_readers_are_woken(net):
    reader, client = net.connect(), net.connect()
    reader.send(frame(fetch_request("orders", {1: 0}, max_wait_ms=60_000), 12, 3))
    with everything_is_big():
        sent(net, client, frame(several(net, 9), 9, 1) + frame(m.ApiVersionsRequest(), 0, 2))
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2]
    assert [correlation_id for correlation_id, _ in reader.answers()] == [3]


@pytest.mark.parametrize("refused", [False, True])
def test_without_acks_there_is_no_answer_and_a_refusal_closes(net, refused):
    client = net.connect()
    request = several(net, 9, acks=0) if refused else produce_request("orders", 0, [b"a"], acks=0)
    with everything_is_big():
        sent(net, client, frame(request, 9, 1))
    net.run()
    assert client.answers() == []
    assert client.transport.closed == refused
    assert values_in(net, 0)


def test_a_write_that_fails_is_told_and_the_others_are_made(net, monkeypatch):
    partition = net.ctx.replicas.get("orders", 0)
    write = type(partition).write_pending

    def fails(which):
        if which is partition:
            raise StorageFailed("the disk is full", offline=False)
        write(which)

    monkeypatch.setattr(type(partition), "write_pending", fails)
    client = net.connect()
    with everything_is_big():
        sent(net, client, frame(several(net, 9), 9, 1))
    [(_, data)] = client.answers()
    answers = decode(ApiKey.PRODUCE, 9, data).responses[0].partition_responses
    assert [(each.index, each.error_code) for each in answers[:4]] == [(0, 56), (1, 0), (2, 2), (0, 56)]


def test_when_threads_are_busy_the_batches_are_refused(net, monkeypatch):
    submit = net.ctx.env.blocking.submit

    def busy(function, *args):
        if function is big_produce._checked:
            raise BlockingBusy("full")
        return submit(function, *args)

    monkeypatch.setattr(net.ctx.env.blocking, "submit", busy)
    client = net.connect()
    with everything_is_big():
        sent(net, client, frame(produce_request("orders", 0, [b"a"]), 9, 1))
    [(_, data)] = client.answers()
    [answer] = decode(ApiKey.PRODUCE, 9, data).responses[0].partition_responses
    assert answer.error_code == 7


def test_it_waits_for_replicas_outside_of_the_gate(net):
    partition = net.ctx.replicas.get("orders", 0)
    settled = []
    client = net.connect()
    handler = net.hub.dispatcher._hot[ApiKey.PRODUCE]
    handler._purgatory.wait = lambda results, timeout_ms, done: settled.append((results, done))
    partition.isr = (1, 2)

    async def send():
        client.send(frame(produce_request("orders", 0, [b"a"], acks=-1), 9, 1))
        await until(lambda: bool(settled))

    with everything_is_big():
        net.run(send())
    assert isinstance(client.connection.waiting, BigProduce)
    assert net.ctx.big_bodies._inside == 0
    [(results, done)] = settled
    done(results)
    net.run(until(lambda: client.connection.waiting is None))
    [(_, data)] = client.answers()
    assert decode(ApiKey.PRODUCE, 9, data).responses[0].partition_responses[0].error_code == 0


def test_a_client_that_goes_does_not_stop_it(net):
    client = net.connect()

    async def send():
        client.send(frame(several(net, 9), 9, 1))
        client.lose()
        await until(lambda: not len(net.ctx.env.tasks))

    with everything_is_big():
        net.run(send())
    assert [len(values_in(net, index)) for index in range(3)] == [2, 1, 0]


def test_what_does_not_parse_closes_with_a_line(net, caplog):
    client = net.connect()
    data = bytearray(frame(produce_request("orders", 0, [b"a"]), 9, 1)[:-9])
    data[:4] = (len(data) - 4).to_bytes(4, "big")
    with everything_is_big():
        sent(net, client, bytes(data))
    assert client.transport.closed
    assert "Produce v9 from client 'test' does not parse" in caplog.text
    assert net.ctx.big_bodies._inside == 0


def test_the_number_of_elements_decides(net):
    few, many = net.connect(), net.connect()
    place = m.ProduceRequest.PartitionProduceData(index=0, records=batch(b"a"))
    for client, count in ((few, produce.FEW_ELEMENTS - 1), (many, produce.FEW_ELEMENTS)):
        topic = m.ProduceRequest.TopicProduceData(name="none", partition_data=[place] * count)
        client.send(frame(m.ProduceRequest(acks=1, topic_data=[topic]), 9, 1))
    assert few.connection.waiting is None
    assert isinstance(many.connection.waiting, BigProduce)
    net.run(until(lambda: many.connection.waiting is None))
    [(_, data)] = many.answers()
    assert {p.error_code for p in decode(ApiKey.PRODUCE, 9, data).responses[0].partition_responses} == {3}


def test_names_longer_than_topics_may_have_count_for_more(net):
    client = net.connect()
    topics = [m.ProduceRequest.TopicProduceData(name="x" * 32_000 + str(i)) for i in range(20)]
    client.send(frame(m.ProduceRequest(acks=1, topic_data=topics), 9, 1))
    net.end_turn()
    [(_, data)] = client.answers()
    assert len(decode(ApiKey.PRODUCE, 9, data).responses) == 20
