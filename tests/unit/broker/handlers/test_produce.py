import pytest

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.records.batch import Record, batches, records
from protocol.records.builder import build_batch
from protocol.records.legacy import build_message_set
from tests.support.net_broker import NetBroker, decode, fetch_request, frame, produce_request


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.topic_id = made.create("orders", 3).topic_id
        yield made


def only(response):
    return response.responses[0].partition_responses[0]


def with_records(data, acks=1, topic="orders"):
    request = produce_request(topic, 0, [b""], acks=acks)
    request.topic_data[0].partition_data[0].records = data
    return request


def values_in(net, partition=0, version=12):
    client = net.connect()
    data = client.call(fetch_request("orders", {partition: 0}), version).responses[0].partitions[0].records
    return [record.value for at, _ in batches(data) for record in records(data, at)]


def test_partitions_are_independent(net):
    request = m.ProduceRequest(acks=1, timeout_ms=1000)
    data = m.ProduceRequest.PartitionProduceData
    good = build_batch([Record(0, 1, None, b"a")])
    bad = bytearray(good)
    bad[-1] ^= 1
    request.topic_data = [
        m.ProduceRequest.TopicProduceData(
            name="orders",
            partition_data=[
                data(index=0, records=good),
                data(index=1, records=bad),
                data(index=9, records=good),
            ],
        ),
        m.ProduceRequest.TopicProduceData(name="nothing", partition_data=[data(index=0, records=good)]),
    ]
    answer = net.connect().call(request, 8)
    got = [
        (t.name, p.index, p.error_code, p.base_offset)
        for t in answer.responses
        for p in t.partition_responses
    ]
    assert got == [("orders", 0, 0, 0), ("orders", 1, 2, -1), ("orders", 9, 3, -1), ("nothing", 0, 3, -1)]


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_other_acks_are_refused_for_each_partition(net, acks):
    assert only(net.connect().call(produce_request("orders", 0, [b"a"], acks=acks), 9)).error_code == 21


def test_null_records_are_an_invalid_request(net):
    assert only(net.connect().call(with_records(None), 9)).error_code == 42


def test_an_unknown_topic_id_is_100(net):
    request = produce_request("", 0, [b"a"], topic_id=bytes(range(16)))
    assert only(net.connect().call(request, 13)).error_code == 100


def test_acks_all_below_min_insync_replicas_is_19_and_appends_nothing(net):
    net.create("safe", 1, {"min.insync.replicas": "2"})
    replica = net.ctx.replicas.get("safe", 0)
    assert replica.min_isr == 1  # never more than there are replicas
    replica.replicas = (1, 2)
    client = net.connect()
    assert only(client.call(produce_request("safe", 0, [b"a"], acks=-1), 9)).error_code == 19
    assert only(client.call(produce_request("safe", 0, [b"a"], acks=1), 9)).error_code == 0
    assert replica.log.end_offset == 1


def test_internal_topics_take_records_of_the_admin_client_only(net):
    net.create("__consumer_offsets", 1)
    client = net.connect()
    assert only(client.call(produce_request("__consumer_offsets", 0, [b"a"]), 9)).error_code == 17
    client.send(frame(produce_request("__consumer_offsets", 0, [b"a"]), 9, client_id="__admin_client"))
    net.end_turn()
    [(_, data)] = client.answers()
    assert only(decode(ApiKey.PRODUCE, 9, data)).error_code == 0


@pytest.mark.parametrize("version", [9, 10, 11, 12])
def test_a_transactional_batch_is_not_taken_while_nobody_knows_its_transaction(net, version):
    batch = build_batch(
        [Record(0, 1, None, b"a")], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
    )
    request = with_records(batch)
    assert only(net.connect().call(request, version)).error_code == 53
    request.transactional_id = "t"
    assert only(net.connect().call(request, version)).error_code == 19  # there is no coordinator: ask again
    assert net.ctx.replicas.get("orders", 0).log.end_offset == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_old_message_sets_are_converted(net, magic, codec):
    client = net.connect()
    version = magic * 2
    made = build_message_set([Record(0, 1_000 + i, b"k", b"v%d" % i) for i in range(3)], magic, codec=codec)
    got = only(client.call(with_records(bytes(made)), version))
    assert (got.error_code, got.base_offset) == (0, 0)
    assert values_in(net) == [b"v0", b"v1", b"v2"]


def test_an_old_request_without_a_whole_message_succeeds_with_nothing(net):
    got = only(net.connect().call(with_records(b"\0" * 10), 2))
    assert (got.error_code, got.base_offset) == (0, -1)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_big_compressed_batch_is_checked_beside_the_loop_and_answered_in_order(net, codec):
    client = net.connect()
    values = [bytes([i % 251]) * 997 for i in range(300)]
    made = build_batch([Record(0, 1, None, value) for value in values], codec=codec)

    async def send():
        for turn in range(2):
            client.send(
                frame(with_records(made), 9, 1 + 2 * turn) + frame(m.ApiVersionsRequest(), 0, 2 + 2 * turn)
            )
        while len(client.peek()) < 4:
            await client.wrote(len(client.transport.writes) + 1)

    net.run(send())
    answers = client.answers()
    assert [correlation_id for correlation_id, _ in answers] == [1, 2, 3, 4]
    assert [only(decode(ApiKey.PRODUCE, 9, answers[i][1])).base_offset for i in (0, 2)] == [0, 300]
    assert values_in(net) == values * 2


def test_what_a_thread_refuses_is_answered(net):
    made = build_batch([Record(0, 1, None, b"x" * 5000)], codec=1)
    made[-1] ^= 1
    client = net.connect()

    async def send():
        client.send(frame(with_records(made), 9, 1))
        await client.wrote(1)

    net.run(send())
    [(_, data)] = client.answers()
    assert only(decode(ApiKey.PRODUCE, 9, data)).error_code == 2


def test_a_null_key_on_a_compacted_topic_names_the_record(net):
    net.create("keyed", 1, {"cleanup.policy": "compact"})
    made = build_batch([Record(0, 1, b"k", b"a"), Record(0, 1, None, b"b")])
    got = only(net.connect().call(with_records(made, topic="keyed"), 8))
    assert got.error_code == 87
    assert [error.batch_index for error in got.record_errors] == [1]
    text = "Compacted topic cannot accept message without key in topic partition keyed-0"
    assert got.record_errors[0].batch_index_error_message == text
