"""Whatever a remembered shape answers must be what the general way answers."""

import pytest

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.records.batch import batches, records
from protocol.records.rules import trusted_batch
from tests.support.logs import START_MS, batch, marker
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
    net.call(m.DeleteTopicsRequest(topic_names=["orders"], timeout_ms=60_000), 5)
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


# --- read_committed


@pytest.fixture
def plain(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 1)
        made.ctx.logs.producer_settings.verify = False  # transactions are begun without a coordinator
        yield made


COMMITTED = 1


class Writer:
    """Appends as the leader's own writers do."""

    def __init__(self, net):
        self.net = net
        self.partition = net.ctx.replicas.get("orders", 0)
        self.sequences = {}

    def append(self, data):
        self.partition.append(trusted_batch(data), 1, START_MS)
        self.partition.write_pending()
        self.partition.wake()

    def data(self, producer, count=1):
        first = self.sequences.get(producer, 0)
        self.sequences[producer] = first + count
        self.append(batch(count, producer=producer, epoch=0, sequence=first, transactional=True))

    def end(self, producer, *, commit):
        self.append(marker(producer, 0, commit=commit))


def fetch(client, offset, *, version=12, isolation_level=COMMITTED, times=3):
    """The partition's answer; the memo gives the same as the general way before it."""
    answers = []
    for _ in range(times):
        request = fetch_request("orders", {0: offset}, isolation_level=isolation_level)
        [partition] = client.call(request, version).responses[0].partitions
        answers.append(partition)
    for other in answers[1:]:
        assert bytes(other.records) == bytes(answers[0].records)
        assert other.aborted_transactions == answers[0].aborted_transactions
        assert other.last_stable_offset == answers[0].last_stable_offset
    return answers[0]


def offsets(partition):
    data = bytes(partition.records)
    return [record.offset for at, _ in batches(data) for record in records(data, at)]


def aborted(partition):
    return [(each.producer_id, each.first_offset) for each in partition.aborted_transactions]


@pytest.mark.parametrize("version", [4, 12])
def test_an_open_transaction_ends_what_is_read(plain, version):
    net = plain
    writer, client = Writer(net), net.connect()
    writer.append(batch(2))
    writer.data(1, 2)
    writer.append(batch(1))
    found = fetch(client, 0, version=version)
    assert (offsets(found), found.high_watermark, found.last_stable_offset) == ([0, 1], 5, 2)
    assert aborted(found) == []
    assert offsets(fetch(client, 0, version=version, isolation_level=0)) == [0, 1, 2, 3, 4]
    assert offsets(fetch(client, 2, version=version)) == []
    writer.end(1, commit=True)
    found = fetch(client, 2, version=version)
    assert (offsets(found), aborted(found), found.last_stable_offset) == ([2, 3, 4, 5], [], 6)


@pytest.mark.parametrize("version", [4, 12])
def test_what_was_aborted_is_told_with_the_records(plain, version):
    net = plain
    writer, client = Writer(net), net.connect()
    writer.append(batch(1))
    fetch(client, 0, version=version)
    writer.data(1)
    writer.data(2)
    writer.end(1, commit=False)
    writer.end(2, commit=True)
    writer.data(3)
    writer.end(3, commit=False)
    writer.append(batch(1))
    assert aborted(fetch(client, 0, version=version)) == [(1, 1), (3, 5)]
    assert aborted(fetch(client, 3, version=version)) == [(1, 1), (3, 5)]
    assert aborted(fetch(client, 4, version=version)) == [(3, 5)]
    assert aborted(fetch(client, 7, version=version)) == []
    uncommitted = fetch(client, 0, version=version, isolation_level=0)
    assert uncommitted.aborted_transactions is None
    assert uncommitted.last_stable_offset == 8


def test_a_waiting_consumer_goes_on_when_the_transaction_ends(plain):
    net = plain
    writer, client = Writer(net), net.connect()
    writer.append(batch(1))
    fetch(client, 0)
    request = fetch_request("orders", {0: 1}, isolation_level=COMMITTED, max_wait_ms=60_000)
    client.send(frame(request, 12, 9))
    writer.data(1)
    net.run()
    assert client.answers() == []
    writer.end(1, commit=False)
    net.run()
    [(correlation_id, data)] = client.answers()
    [partition] = decode(ApiKey.FETCH, 12, data).responses[0].partitions
    assert (correlation_id, offsets(partition), aborted(partition)) == (9, [1, 2], [(1, 1)])
