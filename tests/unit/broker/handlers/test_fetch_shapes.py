"""Whatever a remembered shape answers must be what the general way answers."""

import pytest

from protocol import messages as m
from protocol.api_keys import ApiKey
from tests.support.net_broker import NetBroker, decode, fetch_request, frame, produce_request


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.topic_id = made.create("orders", 3).topic_id
        writer = made.connect()
        for i in range(40):
            writer.call(produce_request("orders", 0, [b"%03d" % i * 100]), 9)
        made.call(
            m.DeleteRecordsRequest(
                topics=[
                    m.DeleteRecordsRequest.DeleteRecordsTopic(
                        name="orders",
                        partitions=[
                            m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=3)
                        ],
                    )
                ]
            ),
            2,
        )
        yield made


def fetched(net, client, version, offset, **more):
    name, topic_id = ("orders", bytes(16)) if version < 13 else ("", net.topic_id)
    request = fetch_request(name, {0: offset}, topic_id=topic_id, **more)
    client.send(frame(request, version, 5))
    [(_, data)] = client.answers()
    return data


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("version", range(10, 19))
def test_the_memo_answers_byte_for_byte_as_the_general_way(net, version, isolation_level):
    known = net.connect()
    fetched(net, known, version, 7, isolation_level=isolation_level)
    assert len(known.connection._shapes) == 1
    for offset in (3, 5, 39, 40, 7, 0, 2, 41, 1000, -1):
        for max_bytes in (1, 1000, 1 << 20):
            more = {"isolation_level": isolation_level, "max_bytes": max_bytes}
            answers = {fetched(net, client, version, offset, **more) for client in (known, net.connect())}
            assert len(answers) == 1, (offset, max_bytes)
    partition = decode(ApiKey.FETCH, version, fetched(net, known, version, 7)).responses[0].partitions[0]
    assert (partition.high_watermark, partition.log_start_offset) == (40, 3)


def test_a_memo_needs_nothing_but_the_bytes(net, monkeypatch):
    client = net.connect()
    fetched(net, client, 12, 5)
    monkeypatch.setattr(net.hub, "dispatcher", None)
    for offset in (6, 39, 3):
        partition = decode(ApiKey.FETCH, 12, fetched(net, client, 12, offset)).responses[0].partitions[0]
        assert int.from_bytes(bytes(partition.records[:8]), "big") == offset


def test_min_bytes_parks_until_there_is_enough(net):
    client, writer = net.connect(), net.connect()
    for _ in range(2):
        end = net.ctx.replicas.get("orders", 0).log.end_offset
        name = frame(fetch_request("orders", {0: end}, max_wait_ms=60_000, min_bytes=300), 12, 5)
        client.send(name)
        writer.call(produce_request("orders", 0, [b"x" * 100]), 9)
        assert client.answers() == []
        writer.call(produce_request("orders", 0, [b"x" * 100]), 9)
        [(_, data)] = client.answers()
        assert len(decode(ApiKey.FETCH, 12, data).responses[0].partitions[0].records) > 300
    assert len(net.hub.deadlines) == 0


def test_a_leader_epoch_in_the_request_is_checked_again_after_a_change(net):
    client = net.connect()
    replica = net.ctx.replicas.get("orders", 0)
    request = fetch_request("orders", {0: 5})
    request.topics[0].partitions[0].current_leader_epoch = replica.leader_epoch
    for _ in range(2):
        assert client.call(request, 12).responses[0].partitions[0].error_code == 0
    replica.leader_epoch += 1
    net.ctx.replicas.changed()
    assert client.call(request, 12).responses[0].partitions[0].error_code == 74


def test_a_parked_memo_fetch_learns_that_its_topic_is_gone(net):
    client = net.connect()
    request = frame(fetch_request("orders", {0: 40}, max_wait_ms=60_000), 12, 5)
    client.send(request)
    net.ctx.replicas.get("orders", 0).wake()
    assert client.answers() == []
    net.call(m.DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000), 5)
    [(_, data)] = client.answers()
    assert decode(ApiKey.FETCH, 12, data).responses[0].partitions[0].error_code == 3
    assert len(net.hub.deadlines) == 0


def test_large_answers_come_as_slices_of_the_file(net):
    writer, client = net.connect(), net.connect()
    for i in range(20):
        writer.call(produce_request("orders", 1, [bytes([i]) * 20_000]), 9)
    small = fetch_request("orders", {1: 0}, max_bytes=1 << 20)
    frames = [frame(small, 12, i) for i in range(3)]
    client.send(b"".join(frames))
    answers = client.answers()
    assert [correlation_id for correlation_id, _ in answers] == [0, 1, 2]
    for _, data in answers:
        records = bytes(decode(ApiKey.FETCH, 12, data).responses[0].partitions[0].records)
        assert len(records) > 20 * 20_000
        assert bytes([19]) * 20_000 in records
