"""Whatever a remembered shape answers must be what the general way answers."""

import errno
from types import SimpleNamespace

import pytest

from broker.net.connection import SHAPES_MAX
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.net_broker import NetBroker, decode, frame, produce_request


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.topic_id = made.create("orders", 3).topic_id
        yield made


def shapes_of(client):
    return client.connection._shapes or {}


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", range(3, 14))
def test_the_answer_from_the_memo_is_that_of_the_general_way_but_for_the_offset(net, version, acks):
    client = net.connect()
    name, topic_id = ("orders", bytes(16)) if version < 13 else ("", net.topic_id)
    answers = []
    for turn in range(4):
        request = produce_request(name, 1, [b"v" * (turn * 60), b""], acks=acks, topic_id=topic_id)
        answers.append(client.call(request, version, turn))
        assert len(shapes_of(client)) == 1
    offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
    assert offsets == [0, 2, 4, 6]
    for answer in answers:
        answer.responses[0].partition_responses[0].base_offset = 0
    assert answers[1:] == answers[:1] * 3
    assert net.ctx.replicas.get("orders", 1).log.end_offset == 8


@pytest.mark.parametrize("version", [7, 9])
def test_a_rotation_over_partitions_is_served_from_the_memo(net, version, monkeypatch):
    client = net.connect()
    requests = [frame(produce_request("orders", i % 3, [b"x"]), version, i) for i in range(12)]
    for request in requests[:3]:
        client.send(request)
    monkeypatch.setattr(net.hub, "dispatcher", None)  # from here on nothing may need it
    for request in requests[3:]:
        client.send(request)
    net.end_turn()
    got = [
        decode(ApiKey.PRODUCE, version, data).responses[0].partition_responses[0]
        for _, data in client.answers()
    ]
    assert [(p.index, p.base_offset) for p in got] == [(i % 3, i // 3) for i in range(12)]


@pytest.mark.parametrize("version", [3, 8, 9, 12])
@pytest.mark.parametrize("cut", ["crc", "truncated", "empty", "two", "codec"])
def test_a_bad_batch_is_refused_by_the_memo_as_by_the_general_way(net, version, cut):
    def bad():
        request = produce_request("orders", 0, [b"a", b"b"])
        batch = bytearray(request.topic_data[0].partition_data[0].records)
        if cut == "crc":
            batch[-1] ^= 1
        elif cut == "truncated":
            batch = batch[:-3]
        elif cut == "empty":
            batch = batch[:0]
        elif cut == "two":
            batch = batch + batch
        else:
            batch[22] |= 5
        request.topic_data[0].partition_data[0].records = bytes(batch)
        return request

    fresh = net.connect().call(bad(), version)
    client = net.connect()
    client.call(produce_request("orders", 0, [b"good"]), version)
    again = client.call(bad(), version)
    assert again == fresh
    assert fresh.responses[0].partition_responses[0].error_code != 0
    assert not client.transport.closed
    assert net.ctx.replicas.get("orders", 0).log.end_offset == 1


def test_the_memo_is_dropped_when_the_topic_is_deleted_and_made_again(net):
    client = net.connect()
    for _ in range(2):
        client.call(produce_request("orders", 0, [b"a"]), 9)
    net.call(m.DeleteTopicsRequest(topic_names=["orders"], timeout_ms=60_000), 5)
    gone = client.call(produce_request("orders", 0, [b"a"]), 9)
    assert gone.responses[0].partition_responses[0].error_code == 3
    net.create("orders", 1)
    fresh = client.call(produce_request("orders", 0, [b"a"]), 9).responses[0].partition_responses[0]
    assert (fresh.error_code, fresh.base_offset) == (0, 0)


def test_the_memo_obeys_a_changed_configuration(net):
    client = net.connect()
    for _ in range(2):
        assert (
            client.call(produce_request("orders", 0, [b"a" * 500]), 9)
            .responses[0]
            .partition_responses[0]
            .error_code
            == 0
        )
    alter = m.IncrementalAlterConfigsRequest
    config = alter.AlterableConfig(name="max.message.bytes", config_operation=0, value="100")
    resource = alter.AlterConfigsResource(resource_type=2, resource_name="orders", configs=[config])
    assert net.call(alter(resources=[resource]), 1).responses[0].error_code == 0
    refused = client.call(produce_request("orders", 0, [b"a" * 500]), 9).responses[0].partition_responses[0]
    assert refused.error_code == 10


def test_log_append_time_is_told_by_the_memo_too(net):
    net.create("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    client = net.connect()
    for version in (7, 7, 10, 10):
        got = client.call(produce_request("stamped", 0, [b"a"]), version).responses[0].partition_responses[0]
        assert got.log_append_time_ms > 1_600_000_000_000


def test_a_resent_idempotent_batch_gets_its_first_offset_from_the_memo(net):
    client = net.connect()

    def batch(sequence):
        records = [Record(0, 1_700_000_000_000, None, b"v")]
        built = build_batch(records, producer_id=77, producer_epoch=0, base_sequence=sequence)
        request = produce_request("orders", 0, [b""])
        request.topic_data[0].partition_data[0].records = built
        return request

    offsets = [
        client.call(batch(sequence), 9).responses[0].partition_responses[0].base_offset
        for sequence in (0, 1, 2, 1, 3)
    ]
    assert offsets == [0, 1, 2, 1, 3]
    gap = client.call(batch(9), 9).responses[0].partition_responses[0]
    assert gap.error_code == 45


def test_acks_0_from_the_memo_has_no_bytes_and_closes_on_a_refusal(net):
    client = net.connect()
    for _ in range(3):
        client.send(frame(produce_request("orders", 0, [b"a"], acks=0), 9))
        net.end_turn()
    assert client.answers() == []
    assert net.ctx.replicas.get("orders", 0).log.end_offset == 3
    bad = bytearray(frame(produce_request("orders", 0, [b"a"], acks=0), 9))
    bad[-8] ^= 0xFF
    client.send(bytes(bad))
    net.end_turn()
    net.run()
    assert client.transport.closed
    assert client.answers() == []


def test_remembered_shapes_are_bounded(net):
    client = net.connect()
    for i in range(SHAPES_MAX + 100):
        client.send(frame(produce_request("orders", 0, [b"a"]), 7, i, client_id=f"client-{i}"))
    assert 0 < len(shapes_of(client)) <= SHAPES_MAX
    net.end_turn()
    assert len(client.answers()) == SHAPES_MAX + 100


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_one_shape_serves_all_partitions_of_a_topic(net, version):
    net.topic_id = net.create("wide", 200).topic_id
    client = net.connect()
    name, topic_id = ("wide", bytes(16)) if version < 13 else ("", net.topic_id)
    order = [(7 * i) % 200 for i in range(400)]
    for number, index in enumerate(order):
        client.send(frame(produce_request(name, index, [b"x"], topic_id=topic_id), version, number))
    net.end_turn()
    got = [
        decode(ApiKey.PRODUCE, version, data).responses[0].partition_responses[0]
        for _, data in client.answers()
    ]
    assert [(p.index, p.error_code, p.base_offset) for p in got] == [
        (index, 0, number // 200) for number, index in enumerate(order)
    ]
    assert len(shapes_of(client)) == 1
    assert {net.ctx.replicas.get("wide", i).log.end_offset for i in range(200)} == {2}


@pytest.mark.parametrize("index", [-1, 3, 2**31 - 1, -(2**31)])
def test_the_memo_knows_no_partition_that_is_not_there(net, index):
    client = net.connect()
    client.call(produce_request("orders", 2, [b"good"]), 9)
    fresh = net.connect().call(produce_request("orders", index, [b"a"]), 9)
    assert client.call(produce_request("orders", index, [b"a"]), 9) == fresh
    assert fresh.responses[0].partition_responses[0].error_code == 3
    assert client.call(produce_request("orders", 2, [b"a"]), 9).responses[0].partition_responses[0] != fresh


def test_a_first_request_that_is_refused_leaves_no_way_around_the_checks(net):
    replica = net.ctx.replicas.get("orders", 1)
    replica.is_leader = False
    client = net.connect()
    for _ in range(3):
        for index, expected in ((1, 6), (0, 0)):
            got = client.call(produce_request("orders", index, [b"a"]), 9)
            assert got.responses[0].partition_responses[0].error_code == expected


def test_acks_all_goes_the_general_way_where_more_replicas_are_needed(net):
    replica = net.ctx.replicas.get("orders", 1)
    replica.replicas = (replica.leader_id, 8)
    replica.log.config.min_insync_replicas = 2
    client = net.connect()
    for _ in range(3):
        for index, expected in ((0, 0), (1, 19)):
            got = client.call(produce_request("orders", index, [b"a"], acks=-1), 9)
            assert got.responses[0].partition_responses[0].error_code == expected


def test_a_failed_write_is_told_to_those_who_wrote_to_that_partition(net, monkeypatch):
    client = net.connect()
    for index in range(3):
        client.call(produce_request("orders", index, [b"a"]), 9)

    def full(parts):
        raise OSError(errno.ENOSPC, "no space")

    log = net.ctx.replicas.get("orders", 1).log
    handle = SimpleNamespace(append=full, size=lambda: log.active.size, truncate=lambda size: None)
    monkeypatch.setattr(log, "handle", handle)
    for number, index in enumerate((0, 1, 2, 1, 0)):
        client.send(frame(produce_request("orders", index, [b"b"]), 9, number))
    net.end_turn()
    got = [
        decode(ApiKey.PRODUCE, 9, data).responses[0].partition_responses[0] for _, data in client.answers()
    ]
    assert [(p.index, p.error_code, p.base_offset) for p in got] == [
        (0, 0, 1), (1, 56, -1), (2, 0, 1), (1, 56, -1), (0, 0, 2),
    ]  # fmt: skip
