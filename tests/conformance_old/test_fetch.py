"""Fetch 0 to 3: batches of magic 2 as message sets of magic 0 and 1 (protocol.md 3.6 and F1).

Kafka converts while it sends. What does not fit into the size it has announced by then it leaves for the next
fetch, and fills up with an entry that is cut. So these tests read on as an old consumer does, and compare
records.
"""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record, batches
from protocol.records.builder import build_batch
from protocol.records.legacy import Message, build_message_set, legacy_records, read_message
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

Request = m.FetchRequest
TIME = 1_700_000_000_000
NO_TIME = -1
LOG_APPEND_TIME_BIT = 8
GZIP, ZSTD = 1, 4
BIG = 1 << 20


def rows(*values: bytes | None, key: bytes | None = b"k") -> list[Record]:
    return [Record(i, TIME + i, key, value, (("h", b"x"),)) for i, value in enumerate(values)]


def write(wire: WireClient, topic: str, *batch: Record, partition: int = 0, codec: int = 0) -> None:
    answer = wire.produce(topic, bytes(build_batch(batch, codec=codec)), partition)
    assert answer.error_code == 0, answer


def fetch(
    wire: WireClient,
    topic: str,
    offset: int,
    version: int,
    *partitions: int,
    partition_max_bytes: int = BIG,
    max_bytes: int = BIG,
) -> list[Any]:
    """The answers of the partitions (0 unless named), in their order."""
    places = [
        Request.FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        for p in partitions or (0,)
    ]
    asked = Request(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[Request.FetchTopic(topic=topic, partitions=places)],
    )
    return list(wire.send(asked, version).responses[0].partitions)


def messages(answer: Any) -> list[Message]:
    """The whole entries, wrappers as they are; their checksums must be right."""
    data = bytes(answer.records or b"")
    found = [read_message(data, at, size) for at, size in batches(data)]
    assert all(message.crc_is_right for message in found)
    return found


def unpacked(answer: Any) -> list[Record]:
    data = bytes(answer.records or b"")
    return [record for at, size in batches(data) for record in legacy_records(data, at, size)]


def read_on(wire: WireClient, topic: str, offset: int, version: int, end: int) -> list[Record]:
    """Every record from `offset` to `end`, as a consumer of that version gets them."""
    found: list[Record] = []
    while offset < end:
        (answer,) = fetch(wire, topic, offset, version)
        assert answer.error_code == 0, answer
        new = [record for record in unpacked(answer) if record.offset >= offset]
        assert new, f"stuck at {offset}"
        found += new
        offset = new[-1].offset + 1
    return found


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", range(4))
def test_batches_become_messages_of_the_versions_magic(
    wire: WireClient, topic: str, version: int, codec: int
) -> None:
    sent = rows(b"a", None, b"c")
    write(wire, topic, *sent, codec=codec)
    write(wire, topic, *rows(b"d", b"", key=None), codec=codec)
    (answer,) = fetch(wire, topic, 0, version)
    assert (answer.error_code, answer.high_watermark) == (0, 5)
    found = messages(answer)
    magic = 0 if version < 2 else 1
    assert {(message.magic, message.attributes) for message in found} == {(magic, codec)}
    times = [TIME, TIME + 1, TIME + 2, TIME, TIME + 1] if magic else [NO_TIME] * 5
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read_on(wire, topic, 0, version, 5)] == [
        (0, times[0], b"k", b"a"),
        (1, times[1], b"k", None),
        (2, times[2], b"k", b"c"),
        (3, times[3], None, b"d"),
        (4, times[4], None, b""),
    ]


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", range(1, 4))
def test_a_wrapper_has_the_last_offset_and_the_greatest_time(
    wire: WireClient, topic: str, version: int, codec: int
) -> None:
    write(wire, topic, Record(0, TIME + 9, b"k", b"a"), Record(1, TIME, b"k", b"b"), codec=codec)
    (wrapper,) = messages(fetch(wire, topic, 0, version)[0])
    assert (wrapper.key, wrapper.offset) == (None, 1)
    assert wrapper.timestamp == (TIME + 9 if version > 1 else NO_TIME)


@pytest.mark.parametrize("version", range(4))
def test_uncompressed_messages_below_the_fetch_offset_are_left_out(
    wire: WireClient, topic: str, version: int
) -> None:
    write(wire, topic, *rows(b"a", b"b", b"c"))
    assert [r.offset for r in unpacked(fetch(wire, topic, 1, version)[0])] == [1, 2]


@pytest.mark.parametrize("version", range(4))
def test_a_wrapper_comes_whole(wire: WireClient, topic: str, version: int) -> None:
    write(wire, topic, *rows(b"a", b"b", b"c"), codec=GZIP)
    assert [r.offset for r in unpacked(fetch(wire, topic, 2, version)[0])] == [0, 1, 2]


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", [0, GZIP])
def test_log_append_time(wire: WireClient, name: str, version: int, codec: int) -> None:
    wire.create_topic(name, message_timestamp_type="LogAppendTime")
    write(wire, name, *rows(b"a", b"b"), codec=codec)
    (answer,) = fetch(wire, name, 0, version)
    marked = LOG_APPEND_TIME_BIT if version > 1 else 0
    assert {message.attributes for message in messages(answer)} == {codec | marked}
    if version > 1:
        (appended,) = {record.timestamp for record in unpacked(answer)}
        assert appended > TIME


@pytest.mark.parametrize("version", range(4))
def test_ends_and_outside(wire: WireClient, topic: str, version: int) -> None:
    write(wire, topic, *rows(b"a", b"b"))
    at_end, outside = fetch(wire, topic, 2, version)[0], fetch(wire, topic, 3, version)[0]
    assert (at_end.error_code, at_end.high_watermark, bytes(at_end.records or b"")) == (0, 2, b"")
    assert (outside.error_code, outside.high_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert fetch(wire, topic, 0, version, 7)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(4))
def test_zstd_cannot_be_told(wire: WireClient, topic: str, version: int) -> None:
    write(wire, topic, *rows(b"a", b"b"), codec=ZSTD)
    (answer,) = fetch(wire, topic, 0, version)
    assert (answer.error_code, answer.high_watermark) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)
    assert not answer.records


@pytest.mark.parametrize("version", range(4))
def test_what_lies_before_zstd_and_behind_it_is_readable(wire: WireClient, topic: str, version: int) -> None:
    for codec in (0, ZSTD, GZIP):
        write(wire, topic, *rows(b"a", b"b"), codec=codec)
    assert [r.offset for r in unpacked(fetch(wire, topic, 0, version)[0])] == [0, 1]
    assert fetch(wire, topic, 2, version)[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert [r.offset for r in unpacked(fetch(wire, topic, 4, version)[0])] == [4, 5]


@pytest.mark.parametrize("version", [4, 9])
def test_versions_4_to_9_do_not_get_zstd_from_us(
    either_old_broker: OttlaProcess | KafkaProcess, wire: WireClient, topic: str, version: int
) -> None:
    """Clients of these versions cannot unpack it. Apache Kafka sends it all the same where the topic's own
    setting does not name zstd."""
    write(wire, topic, *rows(b"a"), codec=ZSTD)
    ours = isinstance(either_old_broker, OttlaProcess)
    expected = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if ours else ErrorCode.NONE
    assert fetch(wire, topic, 0, version)[0].error_code == expected


@pytest.mark.parametrize("version", [0, 3, 4, 9])
@pytest.mark.parametrize("filled", [False, True])
def test_a_topic_of_zstd_is_for_version_10_even_empty(
    wire: WireClient, name: str, version: int, filled: bool
) -> None:
    wire.create_topic(name, compression_type="zstd")
    if filled:
        write(wire, name, *rows(b"a"))
    assert fetch(wire, name, 0, version)[0].error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert fetch(wire, name, 0, 10)[0].error_code == 0


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("filled", [False, True])
def test_conversion_can_be_forbidden(wire: WireClient, name: str, version: int, filled: bool) -> None:
    wire.create_topic(name, message_downconversion_enable="false")
    if filled:
        write(wire, name, *rows(b"a"))
    assert fetch(wire, name, 0, version)[0].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert fetch(wire, name, 0, 4)[0].error_code == 0


def batch_size(wire: WireClient, topic: str) -> int:
    return len(wire.stored_batches(topic)[0])


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("codec", [0, GZIP])
def test_the_oldest_versions_obey_the_partitions_limit(
    wire: WireClient, topic: str, version: int, codec: int
) -> None:
    for _ in range(4):
        write(wire, topic, *rows(b"a", b"b"), codec=codec)
    size = batch_size(wire, topic)
    for limit in (0, 1, size, size + 40, 2 * size, 3 * size):
        (answer,) = fetch(wire, topic, 0, version, partition_max_bytes=limit)
        assert len(answer.records or b"") <= limit
        found = [record.offset for record in unpacked(answer)]
        assert found == list(range(len(found)))
    (answer,) = fetch(wire, topic, 0, version, partition_max_bytes=2 * size)
    assert len(unpacked(answer)) >= 2


@pytest.mark.parametrize("version", range(3))
def test_the_oldest_versions_know_no_limit_of_the_answer(wire: WireClient, name: str, version: int) -> None:
    wire.create_topic(name, partitions=2)
    for partition in (0, 1):
        write(wire, name, *rows(b"a" * 1000, b"b" * 1000), partition=partition)
    answers = fetch(wire, name, 0, version, 0, 1, max_bytes=1)
    assert all(unpacked(answer) for answer in answers)


@pytest.mark.parametrize("limits", [{"max_bytes": 1}, {"partition_max_bytes": 1, "max_bytes": 1}])
def test_version_3_gives_the_first_batch_whole_and_no_second(
    wire: WireClient, name: str, limits: dict[str, int]
) -> None:
    wire.create_topic(name, partitions=2)
    for partition in (0, 1):
        write(wire, name, *rows(b"a" * 1000, b"b" * 1000), partition=partition)
        write(wire, name, *rows(b"c"), partition=partition)
    first, second = fetch(wire, name, 0, 3, 0, 1, **limits)
    assert [record.offset for record in unpacked(first)] == [0, 1]
    assert (second.error_code, bytes(second.records or b"")) == (0, b"")


@pytest.mark.parametrize("version", range(4))
def test_many_batches_are_read_to_the_end(wire: WireClient, topic: str, version: int) -> None:
    for number in range(30):
        write(wire, topic, *rows(*(b"%d" % number * 50,) * 7), codec=number % 4)
    found = read_on(wire, topic, 0, version, 210)
    assert [record.offset for record in found] == list(range(210))
    assert [record.value for record in found] == [b"%d" % (i // 7) * 50 for i in range(210)]


@pytest.mark.parametrize("version", range(4))
def test_records_that_old_clients_wrote_come_back_as_they_were(
    wire: WireClient, topic: str, version: int
) -> None:
    """Stored as magic 2 in between; magic 0 cannot carry their times."""
    sent = [Record(i, TIME + i, b"k", b"v%d" % i) for i in range(3)]
    for codec in (0, GZIP):
        assert wire.produce(topic, build_message_set(sent, 1, codec), version=2).error_code == 0
    found = read_on(wire, topic, 0, version, 6)
    assert [(r.offset, r.key, r.value) for r in found] == [(i, b"k", b"v%d" % (i % 3)) for i in range(6)]
    assert [r.timestamp for r in found] == [TIME + i % 3 if version > 1 else NO_TIME for i in range(6)]
