import errno

import pytest

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.records.batch import batches, records
from protocol.records.legacy import legacy_records
from runtime.os_files import OsFileHandle
from tests.support.net_broker import NetBroker, decode, fetch_request, frame, produce_request


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.topic_id = made.create("orders", 3).topic_id
        yield made


def fill(net, partition=0, count=5, size=100, codec=0, topic="orders"):
    writer = net.connect()
    for i in range(count):
        request = produce_request(topic, partition, [b"%d" % i * size], codec=codec)
        writer.send(frame(request, 9))
        net.end_turn()
        while writer.connection.waiting is not None:
            net.run()


def partitions(response):
    return {p.partition_index: p for t in response.responses for p in t.partitions}


def offsets_in(data):
    return [record.offset for at, _ in batches(data) for record in records(data, at)]


def test_several_partitions_share_the_limit_and_the_first_with_records_gives_one_batch_whole(net):
    fill(net, 1)
    fill(net, 2)
    got = partitions(net.connect().call(fetch_request("orders", {0: 0, 1: 0, 2: 0}, max_bytes=1), 12))
    assert [len(offsets_in(got[i].records or b"")) for i in range(3)] == [0, 1, 0]
    got = partitions(net.connect().call(fetch_request("orders", {0: 0, 1: 0, 2: 0}, max_bytes=10_000), 12))
    assert [len(offsets_in(got[i].records or b"")) for i in range(3)] == [0, 5, 5]


@pytest.mark.parametrize("isolation_level", [2, -1])
def test_an_unknown_isolation_level_fails_as_a_whole(net, isolation_level):
    answer = net.connect().call(fetch_request("orders", {0: 0}, isolation_level=isolation_level), 12)
    assert (answer.error_code, answer.responses) == (-1, [])


def test_errors_carry_no_offsets(net):
    fill(net)
    got = partitions(net.connect().call(fetch_request("orders", {0: 6, 9: 0}), 12))
    assert [(got[i].error_code, got[i].high_watermark, got[i].log_start_offset) for i in (0, 9)] == [
        (1, -1, -1),
        (3, -1, -1),
    ]


def test_a_stale_epoch_tells_where_the_leader_is(net):
    fill(net)
    net.ctx.replicas.get("orders", 0).leader_epoch = 5
    request = fetch_request("", {0: 0}, topic_id=net.topic_id)
    request.topics[0].partitions[0].current_leader_epoch = 2
    answer = net.connect().call(request, 16)
    got = partitions(answer)[0]
    assert (got.error_code, got.current_leader.leader_id) == (74, 1)
    assert [(e.node_id, e.host, e.port) for e in answer.node_endpoints] == [(1, "broker.test", 9092)]
    assert partitions(net.connect().call(request, 15))[0].current_leader.leader_id == -1


def test_a_session_is_told_what_is_new_only(net):
    client = net.connect()
    full = client.call(fetch_request("orders", {0: 0, 1: 0}, session_epoch=0), 12)
    assert full.session_id > 0
    assert sorted(partitions(full)) == [0, 1]
    follow = {"session_id": full.session_id}
    nothing = client.call(m.FetchRequest(min_bytes=1, max_bytes=9999, session_epoch=1, **follow), 12)
    assert (nothing.session_id, nothing.responses) == (full.session_id, [])
    fill(net, 1, 1)
    news = client.call(m.FetchRequest(min_bytes=1, max_bytes=9999, session_epoch=2, **follow), 12)
    assert [(i, offsets_in(p.records)) for i, p in partitions(news).items()] == [(1, [0])]
    wrong = client.call(m.FetchRequest(min_bytes=1, session_epoch=2, **follow), 12)
    assert wrong.error_code == 71
    assert client.call(m.FetchRequest(session_id=12345, session_epoch=1), 12).error_code == 70


def old_answer(net, version, **more):
    client = net.connect()

    async def send():
        client.send(frame(fetch_request("orders", {0: 0}, **more), version, 1))
        await client.wrote(1)

    net.run(send())
    [(_, data)] = client.answers()
    return partitions(decode(ApiKey.FETCH, version, data))[0]


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", [0, 1])
def test_old_clients_get_their_format(net, version, codec):
    fill(net, count=3, codec=codec)
    data = bytes(old_answer(net, version).records)
    magic = 0 if version < 2 else 1
    assert {data[at + 16] for at, _ in batches(data)} == {magic}
    got = [record for at, size in batches(data) for record in legacy_records(data, at, size)]
    assert [(record.offset, record.value[:1]) for record in got] == [(0, b"0"), (1, b"1"), (2, b"2")]


def test_the_oldest_clients_get_their_limit_to_the_byte(net):
    fill(net, count=3)
    assert len(old_answer(net, 2, max_bytes=100).records) == 100


def test_zstd_is_not_for_clients_below_version_10(net):
    fill(net, codec=4)
    assert old_answer(net, 3).error_code == 76
    client = net.connect()
    assert partitions(client.call(fetch_request("orders", {0: 0}), 9))[0].error_code == 76
    assert partitions(client.call(fetch_request("orders", {0: 0}), 10))[0].error_code == 0


@pytest.mark.parametrize("version", [3, 9])
def test_records_that_the_disk_does_not_give_take_its_directory_offline(net, version, monkeypatch):
    fill(net, size=9000)

    def fail(handle, position, length):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(OsFileHandle, "read_at", fail)
    got = partitions(net.connect().call(fetch_request("orders", {0: 0}), version))
    assert (got[0].error_code, got[0].records or b"") == (56, b"")
    assert not net.ctx.logs.online_dirs()


def test_conversion_can_be_switched_off(net):
    net.ctx.replicas.get("orders", 0).log.config.message_downconversion_enable = False
    assert old_answer(net, 1, max_wait_ms=0).error_code == 35
    fill(net)
    assert old_answer(net, 1).error_code == 35


def test_an_answer_that_is_not_read_holds_back_the_next(net):
    fill(net, count=3)
    client = net.connect()
    client.connection.pause_writing()
    client.send(frame(fetch_request("orders", {0: 0}), 12, 1))
    assert client.answers() == []
    client.connection.resume_writing()
    assert len(client.answers()) == 1
