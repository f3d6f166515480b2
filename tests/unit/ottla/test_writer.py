"""Writing records: partitions, batches, retries; the client is a double."""

from __future__ import annotations

import pytest

from ottla.client import ClientError
from ottla.writer import Delivery, Writer, murmur2
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record, batches, read_header, records


class Cluster:
    """Stands for a KafkaClient; `errors` are the codes of the next answers."""

    def __init__(self, partitions: int = 1, errors: tuple[int, ...] = ()) -> None:
        self.partitions = partitions
        self.errors = list(errors)
        self.written: list[tuple[int, bytes]] = []
        self.forgotten = 0

    def partitions_of(self, topic, create_missing):
        return list(range(self.partitions))

    def leader(self, topic, partition):
        return 1

    def forget_leader(self, topic, partition):
        self.forgotten += 1

    def connection(self, node):
        return self

    def version_for(self, api_key):
        return m.ProduceRequest.MAX_VERSION

    def call(self, request, node, version):
        assert version <= 12  # where topics still have names
        part = request.topic_data[0].partition_data[0]
        code = self.errors.pop(0) if self.errors else 0
        if code == 0:
            self.written.append((part.index, bytes(part.records)))
        if request.acks == 0:
            return None
        answer = m.ProduceResponse.PartitionProduceResponse(
            index=part.index, error_code=code, error_message="its words" if code else None
        )
        topic = m.ProduceResponse.TopicProduceResponse(name="t", partition_responses=[answer])
        return m.ProduceResponse(responses=[topic])


def value(text: bytes, key: bytes | None = None) -> Record:
    return Record(0, 1, key, text)


# Published test vectors of Kafka's own hash.
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_javas_producer_hashes_them(content, expected) -> None:
    assert murmur2(content) == expected & 0xFFFFFFFF


def test_a_key_chooses_the_partition_and_order_is_kept() -> None:
    cluster = Cluster(partitions=4)
    writer = Writer(cluster, "t", Delivery())
    for number in range(40):
        writer.add(value(b"%d" % number, b"key%d" % (number % 8)))
    writer.flush()
    found: dict[bytes, set[int]] = {}
    for partition, data in cluster.written:
        for at, _ in batches(data):
            numbers = [int(each.value or b"") for each in records(data, at)]
            assert numbers == sorted(numbers)
            for each in records(data, at):
                found.setdefault(each.key or b"", set()).add(partition)
    assert len(found) == 8
    assert all(partitions == {(murmur2(key) & 0x7FFFFFFF) % 4} for key, partitions in found.items())


def test_records_without_a_key_go_round_by_batches() -> None:
    cluster = Cluster(partitions=3)
    writer = Writer(cluster, "t", Delivery(batch_bytes=100))
    for _number in range(30):
        writer.add(value(b"x" * 20))
    writer.flush()
    assert {partition for partition, _ in cluster.written} == {0, 1, 2}
    assert sum(read_header(data).record_count for _, data in cluster.written) == 30


def test_a_refusal_for_the_moment_is_sent_again() -> None:
    cluster = Cluster(errors=(ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS))
    writer = Writer(cluster, "t", Delivery(retry_backoff_ms=0))
    writer.add(value(b"a"))
    writer.flush()
    assert (len(cluster.written), cluster.forgotten) == (1, 2)


def test_after_the_last_attempt_and_for_lasting_refusals_it_gives_up() -> None:
    lasting = Cluster(errors=(ErrorCode.MESSAGE_TOO_LARGE,))
    tried = Cluster(errors=(ErrorCode.NOT_ENOUGH_REPLICAS,) * 3)
    for cluster, attempts in ((lasting, 0), (tried, 2)):
        writer = Writer(cluster, "t", Delivery(retries=2, retry_backoff_ms=0))
        writer.add(value(b"a"))
        with pytest.raises(ClientError, match="t-0: its words"):
            writer.flush()
        assert cluster.forgotten == attempts
        assert not cluster.written


def test_what_got_no_answer_is_not_sent_again(monkeypatch) -> None:
    cluster = Cluster()

    def lost(*_: object) -> None:
        raise ClientError("the connection failed")

    monkeypatch.setattr(cluster, "call", lost)
    writer = Writer(cluster, "t", Delivery())
    writer.add(value(b"a"))
    with pytest.raises(ClientError, match="the connection failed"):
        writer.flush()
    assert cluster.forgotten == 0


def test_without_acknowledgement_no_answer_is_expected() -> None:
    cluster = Cluster()
    writer = Writer(cluster, "t", Delivery(acks=0, codec=4))
    writer.add(value(b"a"))
    writer.flush()
    ((_, data),) = cluster.written
    assert read_header(data).codec == 4
