"""What read_committed consumers are answered: up to the last stable offset, with what was aborted."""

import pytest

from protocol.api_keys import ApiKey
from protocol.records.batch import batches, records
from protocol.records.rules import trusted_batch
from tests.support.logs import START_MS, batch, marker
from tests.support.net_broker import NetBroker, decode, fetch_request, frame

COMMITTED = 1


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 1)
        yield made


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


def fetch(net, client, offset, *, version=12, isolation_level=COMMITTED, times=3):
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
def test_an_open_transaction_ends_what_is_read(net, version):
    writer, client = Writer(net), net.connect()
    writer.append(batch(2))
    writer.data(1, 2)
    writer.append(batch(1))
    found = fetch(net, client, 0, version=version)
    assert (offsets(found), found.high_watermark, found.last_stable_offset) == ([0, 1], 5, 2)
    assert aborted(found) == []
    assert offsets(fetch(net, client, 0, version=version, isolation_level=0)) == [0, 1, 2, 3, 4]
    assert offsets(fetch(net, client, 2, version=version)) == []
    writer.end(1, commit=True)
    found = fetch(net, client, 2, version=version)
    assert (offsets(found), aborted(found), found.last_stable_offset) == ([2, 3, 4, 5], [], 6)


@pytest.mark.parametrize("version", [4, 12])
def test_what_was_aborted_is_told_with_the_records(net, version):
    writer, client = Writer(net), net.connect()
    writer.append(batch(1))
    fetch(net, client, 0, version=version)
    writer.data(1)
    writer.data(2)
    writer.end(1, commit=False)
    writer.end(2, commit=True)
    writer.data(3)
    writer.end(3, commit=False)
    writer.append(batch(1))
    assert aborted(fetch(net, client, 0, version=version)) == [(1, 1), (3, 5)]
    assert aborted(fetch(net, client, 3, version=version)) == [(1, 1), (3, 5)]
    assert aborted(fetch(net, client, 4, version=version)) == [(3, 5)]
    assert aborted(fetch(net, client, 7, version=version)) == []
    uncommitted = fetch(net, client, 0, version=version, isolation_level=0)
    assert uncommitted.aborted_transactions is None
    assert uncommitted.last_stable_offset == 8


def test_a_waiting_consumer_goes_on_when_the_transaction_ends(net):
    writer, client = Writer(net), net.connect()
    writer.append(batch(1))
    fetch(net, client, 0)
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
