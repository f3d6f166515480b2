"""What Produce accepts, refuses and answers (protocol.md 3.4 and 7)."""

from __future__ import annotations

import struct

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record, read_header, records
from protocol.records.builder import build_batch
from protocol.records.crc import crc32c
from tests.support.wire_client import WireClient

NOW = 1_700_000_000_000
COUNT_AT, LAST_DELTA_AT, ATTRIBUTES_AT, CRC_AT, MAGIC_AT = 57, 23, 21, 17, 16


def values(*payloads: bytes | None, key: bytes | None = b"k", timestamp: int = NOW) -> list[Record]:
    return [Record(i, timestamp, key, payload, ()) for i, payload in enumerate(payloads)]


def batch(*payloads: bytes, **options: object) -> bytearray:
    return build_batch(values(*payloads), **options)


def signed(changed: bytearray) -> bytearray:
    """With a right CRC again."""
    struct.pack_into(">I", changed, CRC_AT, crc32c(memoryview(changed)[ATTRIBUTES_AT:]))
    return changed


def patched(layout: str, at: int, value: int, *payloads: bytes) -> bytearray:
    changed = batch(*(payloads or (b"a", b"b", b"c")))
    struct.pack_into(layout, changed, at, value)
    return signed(changed)


def ends_at(wire: WireClient, topic: str) -> int:
    return wire.list_offset(topic, -1).offset


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_appends_and_answers_the_base_offset(
    wire: WireClient, topic: str, version: int
) -> None:
    first = wire.produce(topic, batch(b"a", b"b"), version=version)
    second = wire.produce(topic, batch(b"c"), version=version)
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset, second.log_append_time_ms) == (0, 2, -1)
    if version >= 5:
        assert second.log_start_offset == 0
    assert [r.value for one in wire.stored_batches(topic) for r in records(one)] == [b"a", b"b", b"c"]


def test_version_13_names_the_topic_by_id(wire: WireClient, name: str) -> None:
    topic_id = wire.create_topic(name)
    Topic, Partition = m.ProduceRequest.TopicProduceData, m.ProduceRequest.PartitionProduceData
    known = Topic(topic_id=topic_id, partition_data=[Partition(index=0, records=batch(b"a"))])
    unknown = Topic(topic_id=b"\x07" * 16, partition_data=[Partition(index=0, records=batch(b"a"))])
    answer = wire.send(m.ProduceRequest(acks=1, timeout_ms=1000, topic_data=[known, unknown]), 13)
    found = {t.topic_id: t.partition_responses[0] for t in answer.responses}
    assert (found[topic_id].error_code, found[topic_id].base_offset) == (0, 0)
    assert found[b"\x07" * 16].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_stored_bytes_are_the_producers_with_offset_and_epoch(wire: WireClient, topic: str) -> None:
    sent = batch(b"a", b"b", codec=2)
    wire.produce(topic, batch(b"before"))
    wire.produce(topic, bytes(sent))
    stored = wire.stored_batches(topic)[1]
    assert stored[MAGIC_AT:] == bytes(sent[MAGIC_AT:])
    assert read_header(stored, 0).base_offset == 1
    assert read_header(stored, 0).leader_epoch == 0


REFUSED = {
    "a wrong CRC": (lambda: bytearray(batch(b"a")[:-1] + b"X"), ErrorCode.CORRUPT_MESSAGE),
    "base offset 77": (lambda: patched(">q", 0, 77), ErrorCode.INVALID_RECORD),
    "count 0": (lambda: patched(">i", COUNT_AT, 0), ErrorCode.INVALID_RECORD),
    "a count too many": (lambda: patched(">i", COUNT_AT, 4), ErrorCode.INVALID_RECORD),
    "a count too few": (lambda: patched(">i", COUNT_AT, 2), ErrorCode.INVALID_RECORD),
    "a negative count": (lambda: patched(">i", COUNT_AT, -3), ErrorCode.INVALID_RECORD),
    "a last delta that is not count - 1": (lambda: patched(">i", LAST_DELTA_AT, 5), ErrorCode.INVALID_RECORD),
    "a control batch": (lambda: patched(">h", ATTRIBUTES_AT, 0x20), ErrorCode.INVALID_RECORD),
    "a producer id without a sequence": (
        lambda: batch(b"a", producer_id=5, producer_epoch=0),
        ErrorCode.INVALID_RECORD,
    ),
    "codec 5": (lambda: patched(">h", ATTRIBUTES_AT, 5), ErrorCode.UNKNOWN_SERVER_ERROR),
    "codec 7": (lambda: patched(">h", ATTRIBUTES_AT, 7), ErrorCode.UNKNOWN_SERVER_ERROR),
    "gzip that is none": (lambda: patched(">h", ATTRIBUTES_AT, 1), ErrorCode.UNKNOWN_SERVER_ERROR),
    "no bytes": (lambda: bytearray(), ErrorCode.INVALID_RECORD),
    "two batches": (lambda: batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_batch_leaves_nothing_behind(wire: WireClient, topic: str, what: str) -> None:
    make, error = REFUSED[what]
    answer = wire.produce(topic, make())
    assert ErrorCode(answer.error_code) == error
    assert answer.base_offset == -1
    assert ends_at(wire, topic) == 0
    assert wire.produce(topic, batch(b"next")).base_offset == 0


def test_an_uncompressed_record_whose_lengths_lie_is_refused(wire: WireClient, topic: str) -> None:
    sent = batch(b"abcdef")
    sent[61] += 2  # the record says it is one byte longer than it is
    assert wire.produce(topic, signed(sent)).error_code == ErrorCode.INVALID_RECORD
    assert ends_at(wire, topic) == 0


def test_one_byte_after_a_good_batch_is_ignored(wire: WireClient, topic: str) -> None:
    assert wire.produce(topic, batch(b"a") + b"\0").error_code == 0
    assert [r.value for one in wire.stored_batches(topic) for r in records(one)] == [b"a"]


def test_the_unused_attribute_bit_64_is_stored(wire: WireClient, topic: str) -> None:
    assert wire.produce(topic, patched(">h", ATTRIBUTES_AT, 0x80)).error_code == 0
    assert read_header(wire.stored_batches(topic)[0], 0).attributes == 0x80


def test_the_producers_leader_epoch_is_overwritten(wire: WireClient, topic: str) -> None:
    sent = batch(b"a")
    struct.pack_into(">i", sent, 12, 99)
    assert wire.produce(topic, sent).error_code == 0
    assert read_header(wire.stored_batches(topic)[0], 0).leader_epoch == 0


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_unknown_acks_are_refused(wire: WireClient, topic: str, acks: int) -> None:
    assert wire.produce(topic, batch(b"a"), acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert ends_at(wire, topic) == 0


def test_an_unknown_partition_or_topic_is_3_and_the_others_are_written(wire: WireClient, topic: str) -> None:
    Topic, Partition = m.ProduceRequest.TopicProduceData, m.ProduceRequest.PartitionProduceData
    request = m.ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            Topic(name=topic, partition_data=[Partition(index=i, records=batch(b"a")) for i in (0, 7)]),
            Topic(name=f"{topic}-missing", partition_data=[Partition(index=0, records=batch(b"a"))]),
        ],
    )
    answer = wire.send(request, 9)
    codes = {(t.name, p.index): p.error_code for t in answer.responses for p in t.partition_responses}
    assert codes == {(topic, 0): 0, (topic, 7): 3, (f"{topic}-missing", 0): 3}


def test_acks_0_has_no_answer_and_the_next_request_is_answered(wire: WireClient, topic: str) -> None:
    wire.produce(topic, batch(b"a"), acks=0)
    wire.produce(topic, batch(b"b"), acks=0)
    assert ends_at(wire, topic) == 2


@pytest.mark.parametrize("what", ["a wrong CRC", "an unknown partition"])
def test_acks_0_with_an_error_closes(wire: WireClient, topic: str, what: str) -> None:
    if what == "a wrong CRC":
        wire.produce(topic, bytearray(batch(b"a")[:-1] + b"X"), acks=0)
    else:
        wire.produce(topic, batch(b"a"), acks=0, partition=9)
    assert wire.is_closed_by_peer()


def test_a_batch_above_max_message_bytes_is_10(wire: WireClient, name: str) -> None:
    wire.create_topic(name, max_message_bytes="200")
    assert wire.produce(name, batch(b"x" * 200)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce(name, batch(b"x" * 100)).error_code == 0
    # The compressed size counts.
    assert wire.produce(name, batch(b"x" * 5000, codec=1)).error_code == 0


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_a_record_above_max_decompressed_message_bytes_is_87(wire: WireClient, name: str, codec: int) -> None:
    """It counts for compressed batches, and what it bounds is the record without its own length."""
    wire.create_topic(name, max_decompressed_message_bytes="1000")
    around = 7  # attributes, times, offset, key, two bytes of length, headers
    fits = build_batch(values(b"x" * (1000 - around), key=None), codec=codec)
    assert wire.produce(name, bytes(fits)).error_code == 0
    for payloads in ((b"x" * (1001 - around),), (b"a", b"x" * 5000), (b"a", b"x" * 100_000, b"b")):
        answer = wire.produce(name, bytes(build_batch(values(*payloads, key=None), codec=codec)))
        assert answer.error_code == (ErrorCode.INVALID_RECORD if codec else 0)


def test_a_batch_that_fits_into_no_segment_is_18(wire: WireClient, name: str) -> None:
    wire.create_topic(name, segment_bytes=str(1 << 20), max_message_bytes="4000000")
    assert wire.produce(name, batch(b"x" * 1_200_000)).error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert ends_at(wire, name) == 0


def test_size_is_checked_before_the_crc(wire: WireClient, name: str) -> None:
    wire.create_topic(name, max_message_bytes="100")
    assert (
        wire.produce(name, bytearray(batch(b"x" * 200)[:-1] + b"X")).error_code == ErrorCode.MESSAGE_TOO_LARGE
    )


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_a_compacted_topic_refuses_a_missing_key_and_names_the_record(
    wire: WireClient, name: str, codec: int
) -> None:
    wire.create_topic(name, cleanup_policy="compact")
    mixed = build_batch([Record(0, NOW, b"k", b"a", ()), Record(1, NOW, None, b"b", ())], codec=codec)
    answer = wire.produce(name, mixed)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    text = f"Compacted topic cannot accept message without key in topic partition {name}-0"
    told = [(r.batch_index, r.batch_index_error_message) for r in answer.record_errors]
    assert told == [(1, text)]
    assert ends_at(wire, name) == 0


def test_no_more_in_sync_replicas_are_asked_for_than_there_are_replicas(wire: WireClient, name: str) -> None:
    wire.create_topic(name, min_insync_replicas="2")
    assert wire.produce(name, batch(b"a"), acks=-1).error_code == 0


def test_internal_topics_are_not_for_clients(wire: WireClient) -> None:
    answer = wire.produce("__consumer_offsets", batch(b"a"))
    # Either it does not exist here, or it is refused; never written.
    assert answer.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_log_append_time_stamps_the_batch(wire: WireClient, name: str) -> None:
    wire.create_topic(name, message_timestamp_type="LogAppendTime")
    answer = wire.produce(name, batch(b"a", b"b"))
    (stored,) = wire.stored_batches(name)
    header = read_header(stored, 0)
    assert answer.log_append_time_ms == header.max_timestamp > NOW
    assert header.is_log_append_time
    assert header.base_timestamp == NOW
    assert header.crc == crc32c(memoryview(stored)[ATTRIBUTES_AT:])


def test_a_producers_log_append_time_bit_is_refused_only_without_timestamps(
    wire: WireClient, topic: str
) -> None:
    marked = patched(">h", ATTRIBUTES_AT, 8)
    answer = wire.produce(topic, marked)
    assert answer.error_code == 0
    assert not read_header(wire.stored_batches(topic)[0], 0).is_log_append_time


def test_a_wrong_max_timestamp_is_corrected(wire: WireClient, topic: str) -> None:
    sent = patched(">q", 35, NOW + 5000)
    assert wire.produce(topic, sent).error_code == 0
    (stored,) = wire.stored_batches(topic)
    assert read_header(stored, 0).max_timestamp == NOW
    assert read_header(stored, 0).crc == crc32c(memoryview(stored)[ATTRIBUTES_AT:])


def test_timestamps_outside_the_bounds_are_32_with_the_records(wire: WireClient, name: str) -> None:
    wire.create_topic(name, message_timestamp_before_max_ms="1000")
    answer = wire.produce(name, batch(b"a", b"b"))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [r.batch_index for r in answer.record_errors] == [0, 1]
    unset = build_batch(values(b"a", timestamp=-1))
    assert wire.produce(name, unset).error_code == 0


def test_a_timestamp_more_than_an_hour_ahead_is_32(wire: WireClient, topic: str) -> None:
    answer = wire.produce(topic, build_batch(values(b"a", timestamp=4_000_000_000_000)))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("target", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_the_topics_codec_wins(wire: WireClient, name: str, target: str, codec: int) -> None:
    wire.create_topic(name, compression_type=target)
    sent = build_batch(
        [Record(i, NOW + i, b"k%d" % i, b"value" * i, (("h", b"x"),)) for i in range(20)], codec=codec
    )
    assert wire.produce(name, bytes(sent)).error_code == 0
    (stored,) = wire.stored_batches(name)
    expected = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}[target]
    assert read_header(stored, 0).codec == expected
    if expected == codec:
        assert stored[MAGIC_AT:] == bytes(sent[MAGIC_AT:])
    assert [r[1:] for r in records(stored)] == [r[1:] for r in records(sent)]


def test_zstd_needs_version_7(wire: WireClient, topic: str) -> None:
    sent = batch(b"a", codec=4)
    assert wire.produce(topic, bytes(sent), version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert wire.produce(topic, bytes(sent), version=7).error_code == 0


WRONG_DELTAS = [(0, 0), (0, 5), (1, 2), (1, 0)]


def with_deltas(deltas: tuple[int, int], codec: int) -> bytearray:
    wrong = [Record(delta, NOW, None, b"%d" % delta, ()) for delta in deltas]
    sent = build_batch(wrong, codec=codec, keep_offsets=True)
    struct.pack_into(">i", sent, LAST_DELTA_AT, 1)
    return signed(sent)


@pytest.mark.parametrize("deltas", WRONG_DELTAS)
def test_a_compressed_batch_with_wrong_deltas_is_refused(
    wire: WireClient, topic: str, deltas: tuple[int, int]
) -> None:
    """Kafka means to rebuild it, but has skipped the keys and values by then and fails."""
    assert wire.produce(topic, with_deltas(deltas, 1)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert ends_at(wire, topic) == 0


@pytest.mark.parametrize("deltas", WRONG_DELTAS)
def test_recompression_puts_wrong_deltas_right(wire: WireClient, name: str, deltas: tuple[int, int]) -> None:
    wire.create_topic(name, compression_type="zstd")
    assert wire.produce(name, with_deltas(deltas, 1)).error_code == 0
    (stored,) = wire.stored_batches(name)
    assert [(r.offset, r.value) for r in records(stored)] == [(i, b"%d" % deltas[i]) for i in (0, 1)]


def test_a_transactional_batch_needs_a_transactional_id(wire: WireClient, topic: str) -> None:
    """Also behind requests that were alike but for the batch's attributes."""
    marked = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    refusals = []
    for _ in range(3):
        assert wire.produce(topic, batch(b"plain")).error_code == 0
        refusals.append(wire.produce(topic, bytes(marked)).error_code)
    assert refusals == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 3
    assert ends_at(wire, topic) == 3


def test_pipelined_requests_are_answered_in_order(wire: WireClient, topic: str) -> None:
    Topic, Partition = m.ProduceRequest.TopicProduceData, m.ProduceRequest.PartitionProduceData
    named = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)])
    requests = []
    for number in range(50):
        data = [Topic(name=topic, partition_data=[Partition(index=0, records=batch(b"%d" % number))])]
        requests += [(m.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=data), 9), (named, 9)]
    answers = wire.post_all(*requests)
    produced = [answer.responses[0].partition_responses[0].base_offset for answer in answers[::2]]
    assert produced == list(range(50))
    assert [answer.topics[0].name for answer in answers[1::2]] == [topic] * 50


@pytest.mark.parametrize("version", [0, 1, 2])
def test_apache_kafka_closes_on_versions_0_to_2_and_we_answer(either_broker, wire, topic, version) -> None:
    """4.x advertises them (librdkafka needs that) and closes; 3.9.2 answers, and so do we."""
    sent = batch(b"a")
    if type(either_broker).__name__ == "KafkaProcess":
        with pytest.raises(ConnectionError):
            wire.produce(topic, sent, version=version)
    else:
        assert wire.produce(topic, sent, version=version).error_code == 0
