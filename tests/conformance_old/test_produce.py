"""Produce 0 to 2: message sets of magic 0 and 1, and batches of magic 2 (protocol.md 3.2, 3.4, 3.5)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import BatchHeader, Record, read_header, records
from protocol.records.builder import build_batch
from protocol.records.compression import compress
from protocol.records.legacy import append_message, build_message_set
from tests.support.wire_client import WireClient

TIME = 1_700_000_000_000
SIZE_AT, MAGIC_AT = 8, 16
LOG_APPEND_TIME_BIT = 8
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = {"uncompressed": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
VALUES = [b"v0", b"v1", b"v2"]


def rows(count: int = 3, key: bytes | None = b"k") -> list[Record]:
    return [Record(i, TIME + i, key, b"v%d" % i) for i in range(count)]


def message(
    magic: int,
    value: bytes | None = b"v",
    *,
    key: bytes | None = b"k",
    offset: int = 0,
    timestamp: int = TIME,
    attributes: int = 0,
) -> bytearray:
    out = bytearray()
    append_message(out, magic, offset, timestamp, key, value, attributes)
    return out


def plain(magic: int, offsets: Sequence[int], attributes: int = 0) -> bytearray:
    """Messages with these offsets and the values v0, v1, ..."""
    out = bytearray()
    for number, offset in enumerate(offsets):
        append_message(out, magic, offset, TIME + number, b"k", b"v%d" % number, attributes)
    return out


def wrapper(magic: int, inner: bytes | bytearray, codec: int = GZIP, **fields: int) -> bytearray:
    """A message of `codec` around a message set."""
    attributes = codec | fields.pop("attributes", 0)
    packed = compress(codec, bytes(inner), None, magic)
    return message(magic, packed, key=None, attributes=attributes, **fields)


def damaged(data: bytearray) -> bytearray:
    return data[:-1] + bytes([data[-1] ^ 1])


def with_size(size: int, magic: int) -> bytearray:
    data = message(magic)
    struct.pack_into(">i", data, SIZE_AT, size)
    return data


def with_magic(number: int) -> bytearray:
    data = message(1)
    struct.pack_into(">b", data, MAGIC_AT, number)
    return data


def stored(wire: WireClient, topic: str) -> tuple[BatchHeader, list[Record]]:
    """The only stored batch: all of a request becomes one."""
    (batch,) = wire.stored_batches(topic)
    return read_header(batch, 0), list(records(batch))


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4])
def test_a_set_becomes_one_batch_with_its_codec(
    wire: WireClient, topic: str, version: int, magic: int, codec: int
) -> None:
    for base in (0, 3):
        answer = wire.produce(topic, build_message_set(rows(), magic, codec), version=version)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, base, -1)
    batches = wire.stored_batches(topic)
    assert [read_header(batch, 0).codec for batch in batches] == [codec] * 2
    times = [TIME + i if magic else -1 for i in range(3)]
    found = [(r.offset, r.timestamp, r.key, r.value) for batch in batches for r in records(batch)]
    assert found == [(i, times[i % 3], b"k", VALUES[i % 3]) for i in range(6)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("codec", [0, SNAPPY])
def test_the_topics_codec_wins(wire: WireClient, name: str, magic: int, target: str, codec: int) -> None:
    wire.create_topic(name, compression_type=target)
    assert wire.produce(name, build_message_set(rows(), magic, codec), version=2).error_code == 0
    header, found = stored(wire, name)
    assert header.codec == CODECS[target]
    assert [record.value for record in found] == VALUES


ACCEPTED: dict[str, Callable[[int], bytes | bytearray]] = {
    "a cut entry at the end": lambda magic: build_message_set(rows(4), magic)[:-3],
    "offsets all 0": lambda magic: plain(magic, [0, 0, 0]),
    "offsets backwards": lambda magic: plain(magic, [9, 3, -5]),
    "attributes without meaning": lambda magic: plain(magic, [0, 1, 2], attributes=0x70),
    "a wrapper with offset 0": lambda magic: wrapper(magic, plain(magic, [0, 1, 2])),
    "a wrapper with the last inner offset": lambda magic: wrapper(magic, plain(magic, [0, 1, 2]), offset=2),
    "a wrapper with a greater offset": lambda magic: wrapper(magic, plain(magic, [0, 1, 2]), offset=7),
    "inner offsets all 0": lambda magic: wrapper(magic, plain(magic, [0, 0, 0])),
    "inner offsets with gaps": lambda magic: wrapper(magic, plain(magic, [5, 9, 11])),
    "a wrapper whose last message is cut": lambda magic: wrapper(magic, plain(magic, [0, 1, 2, 3])[:-3]),
}


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("what", ACCEPTED)
def test_what_is_put_right(wire: WireClient, topic: str, magic: int, what: str) -> None:
    answer = wire.produce(topic, ACCEPTED[what](magic), version=2)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    _, found = stored(wire, topic)
    assert [(record.offset, record.value) for record in found] == list(enumerate(VALUES))


REFUSED: dict[str, tuple[Callable[[int], bytes | bytearray], ErrorCode]] = {
    "a wrong CRC": (lambda magic: damaged(plain(magic, [0, 1])), ErrorCode.CORRUPT_MESSAGE),
    "a wrong CRC in front": (
        lambda magic: damaged(message(magic)) + message(magic),
        ErrorCode.CORRUPT_MESSAGE,
    ),
    "a wrapper's wrong CRC": (
        lambda magic: damaged(wrapper(magic, plain(magic, [0]))),
        ErrorCode.CORRUPT_MESSAGE,
    ),
    "a wrong CRC inside": (
        lambda magic: wrapper(magic, damaged(plain(magic, [0, 1]))),
        ErrorCode.CORRUPT_MESSAGE,
    ),
    "a size of 3": (lambda magic: with_size(3, magic), ErrorCode.CORRUPT_MESSAGE),
    "a size of 13": (lambda magic: with_size(13, magic), ErrorCode.CORRUPT_MESSAGE),
    "a size of -1": (lambda magic: with_size(-1, magic), ErrorCode.CORRUPT_MESSAGE),
    "two wrappers": (lambda magic: wrapper(magic, plain(magic, [0])) * 2, ErrorCode.INVALID_RECORD),
    "a wrapper behind a message": (
        lambda magic: message(magic) + wrapper(magic, plain(magic, [0])),
        ErrorCode.INVALID_RECORD,
    ),
    "a wrapper before a message": (
        lambda magic: wrapper(magic, plain(magic, [0])) + message(magic),
        ErrorCode.INVALID_RECORD,
    ),
    "a wrapper in a wrapper": (
        lambda magic: wrapper(magic, wrapper(magic, plain(magic, [0]))),
        ErrorCode.INVALID_RECORD,
    ),
    "a wrapper of the other magic": (
        lambda magic: wrapper(magic, plain(1 - magic, [0])),
        ErrorCode.INVALID_RECORD,
    ),
    "an empty wrapper": (lambda magic: wrapper(magic, b""), ErrorCode.INVALID_RECORD),
    "a null wrapper": (
        lambda magic: message(magic, None, key=None, attributes=GZIP),
        ErrorCode.INVALID_RECORD,
    ),
    "zstd": (
        lambda magic: message(magic, compress(ZSTD, bytes(plain(magic, [0]))), attributes=ZSTD),
        ErrorCode.INVALID_RECORD,
    ),
    "gzip that is none": (lambda magic: message(magic, attributes=GZIP), ErrorCode.UNKNOWN_SERVER_ERROR),
    "snappy that is none": (lambda magic: message(magic, attributes=SNAPPY), ErrorCode.UNKNOWN_SERVER_ERROR),
    "lz4 that is none": (lambda magic: message(magic, attributes=LZ4), ErrorCode.UNKNOWN_SERVER_ERROR),
    "codec 5": (lambda magic: message(magic, attributes=5), ErrorCode.UNKNOWN_SERVER_ERROR),
    "both old formats": (lambda magic: message(magic) + message(1 - magic), ErrorCode.INVALID_RECORD),
    "a batch behind a message": (
        lambda magic: message(magic) + build_batch(rows()),
        ErrorCode.INVALID_RECORD,
    ),
    "a batch before a message": (
        lambda magic: build_batch(rows()) + message(magic),
        ErrorCode.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_set_leaves_nothing_behind(wire: WireClient, topic: str, magic: int, what: str) -> None:
    make, error = REFUSED[what]
    answer = wire.produce(topic, make(magic), version=2)
    assert (ErrorCode(answer.error_code), answer.base_offset) == (error, -1)
    assert wire.produce(topic, message(magic), version=2).base_offset == 0


def test_a_wrapper_offset_below_its_last_message_is_87_in_magic_1_only(wire: WireClient, topic: str) -> None:
    """In magic 0 the inner offsets are absolute, so that nobody looks at the wrapper's."""
    low = wrapper(1, plain(1, [0, 1, 2]), offset=1)
    assert wire.produce(topic, low, version=2).error_code == ErrorCode.INVALID_RECORD
    assert wire.produce(topic, wrapper(0, plain(0, [0, 1, 2]), offset=1), version=2).error_code == 0


@pytest.mark.parametrize("number", [3, 100, -1])
def test_other_magics_are_2(wire: WireClient, topic: str, number: int) -> None:
    assert wire.produce(topic, with_magic(number), version=2).error_code == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("length", [0, 5, 12, 17, -3])
def test_nothing_whole_appends_nothing_and_is_no_error(
    wire: WireClient, topic: str, version: int, magic: int, length: int
) -> None:
    answer = wire.produce(topic, message(magic)[:length], version=version)
    assert (answer.error_code, answer.base_offset) == (0, -1)
    assert wire.list_offset(topic, -1).offset == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_compacted_topic_needs_keys(wire: WireClient, name: str, magic: int, codec: int) -> None:
    wire.create_topic(name, cleanup_policy="compact")
    refused = wire.produce(name, build_message_set(rows(2, None), magic, codec), version=2)
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert wire.produce(name, build_message_set(rows(2), magic, codec), version=2).error_code == 0


@pytest.mark.parametrize("codec", [0, GZIP])
def test_times_have_bounds_where_there_are_times(wire: WireClient, name: str, codec: int) -> None:
    wire.create_topic(name, message_timestamp_before_max_ms="1000")
    with_times, without = (build_message_set(rows(2), magic, codec) for magic in (1, 0))
    assert wire.produce(name, with_times, version=2).error_code == ErrorCode.INVALID_TIMESTAMP
    assert wire.produce(name, without, version=2).error_code == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_the_size_limit_counts_for_each_entry_and_for_the_batch(
    wire: WireClient, name: str, magic: int
) -> None:
    wire.create_topic(name, max_message_bytes="200")
    small = message(magic, b"x" * 50)
    assert wire.produce(name, message(magic, b"x" * 200), version=2).error_code == 10
    assert wire.produce(name, small * 10, version=2).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce(name, small, version=2).error_code == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP])
def test_log_append_time(wire: WireClient, name: str, magic: int, codec: int) -> None:
    wire.create_topic(name, message_timestamp_type="LogAppendTime")
    answer = wire.produce(name, build_message_set(rows(), magic, codec), version=2)
    header, found = stored(wire, name)
    assert header.is_log_append_time
    assert {record.timestamp for record in found} == {answer.log_append_time_ms}
    assert answer.log_append_time_ms > TIME


def test_a_producers_log_append_time_counts_for_the_messages_of_its_wrapper(
    wire: WireClient, topic: str
) -> None:
    marked = wrapper(1, plain(1, [0, 1, 2]), attributes=LOG_APPEND_TIME_BIT, timestamp=TIME + 50)
    assert wire.produce(topic, marked, version=2).error_code == 0
    header, found = stored(wire, topic)
    assert not header.is_log_append_time
    assert [record.timestamp for record in found] == [TIME + 50] * 3


@pytest.mark.parametrize("magic", [0, 1])
def test_null_keys_and_values(wire: WireClient, topic: str, magic: int) -> None:
    sent = message(magic, None) + message(magic, key=None) + message(magic, b"", key=b"")
    assert wire.produce(topic, sent, version=2).error_code == 0
    _, found = stored(wire, topic)
    assert [(r.key, r.value) for r in found] == [(b"k", None), (None, b"v"), (b"", b"")]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("codec", CODECS.values())
def test_a_batch_of_magic_2_is_taken_as_it_is(wire: WireClient, topic: str, version: int, codec: int) -> None:
    """Even of zstd, which versions 3 to 6 refuse: Kafka looks at the records of those only."""
    sent = build_batch(
        [Record(i, TIME, b"k", value, (("h", b"x"),)) for i, value in enumerate(VALUES)], codec=codec
    )
    assert wire.produce(topic, bytes(sent), version=version).error_code == 0
    (batch,) = wire.stored_batches(topic)
    assert batch[MAGIC_AT:] == bytes(sent[MAGIC_AT:])


def test_batches_of_magic_2_come_one_by_one_and_whole(wire: WireClient, topic: str) -> None:
    batch = build_batch(rows())
    assert wire.produce(topic, batch * 2, version=2).error_code == ErrorCode.INVALID_RECORD
    assert wire.produce(topic, damaged(batch), version=2).error_code == ErrorCode.CORRUPT_MESSAGE
    assert wire.produce(topic, batch[:-3], version=2).base_offset == -1
    assert wire.list_offset(topic, -1).offset == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("version", [3, 9])
def test_newer_versions_take_magic_2_only(wire: WireClient, topic: str, magic: int, version: int) -> None:
    assert wire.produce(topic, message(magic), version=version).error_code == ErrorCode.INVALID_RECORD


def test_acks_0_has_no_answer(wire: WireClient, topic: str) -> None:
    wire.produce(topic, build_message_set(rows(), 1, GZIP), acks=0, version=1)
    assert wire.produce(topic, message(1), version=1).base_offset == 3
