"""Batches that Kafka refuses: none is accepted, and the partition stays readable (promises.md).

Each variant is one sound batch of five records with one thing wrong. Where something behind the checksum is
wrong, the checksum is made right again, so that nothing but that one thing can be noticed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import pytest

from protocol import messages as m
from protocol.records.batch import HEADER_SIZE, NO_TIMESTAMP, Record, records
from protocol.records.builder import build_batch, stamp_crc, wrap_section
from protocol.records.compression import GZIP, LZ4, SNAPPY, ZSTD, compress
from protocol.records.varints import append_varint
from tests.hostile.victim import Victim

TIME = 1_700_000_000_000
RECORDS = [Record(i, TIME + i, b"key", b"value-%d" % i, (("name", b"content"),)) for i in range(5)]
CODECS = (0, GZIP, SNAPPY, LZ4, ZSTD)


def sound(codec: int = 0) -> bytearray:
    return build_batch(RECORDS, codec=codec)


def changed(at: int, code: str, value: int, codec: int = 0) -> bytearray:
    """A field of the header has another value; the checksum is right."""
    batch = sound(codec)
    struct.pack_into(f">{code}", batch, at, value)
    stamp_crc(batch, 0, len(batch))
    return batch


def unstamped(at: int, code: str, value: int) -> bytearray:
    batch = sound()
    struct.pack_into(f">{code}", batch, at, value)
    return batch


def around(section: bytes, codec: int = 0, count: int = 5) -> bytearray:
    """A sound header around any records section."""
    return wrap_section(
        compress(codec, section),
        attributes=codec,
        last_offset_delta=count - 1,
        base_timestamp=TIME,
        max_timestamp=TIME,
        count=count,
    )


def record(body: bytes, size: int | None = None) -> bytes:
    out = bytearray()
    append_varint(out, len(body) if size is None else size)
    return bytes(out + body)


PLAIN = bytes(sound()[HEADER_SIZE:])


def variants() -> Iterator[tuple[str, bytes | bytearray]]:
    """What is wrong, and the bytes."""
    yield "no bytes", b""
    yield "junk", b"\xff" * 200
    yield "zeros", bytes(200)
    yield "cut in the header", sound()[:40]
    yield "cut in the records", sound()[:-3]
    yield "two batches", sound() + sound()
    yield "magic 0", unstamped(16, "b", 0)
    yield "magic 1", unstamped(16, "b", 1)
    yield "magic 3", unstamped(16, "b", 3)
    yield "magic -1", unstamped(16, "b", -1)
    yield "length -1", unstamped(8, "i", -1)
    yield "length 0", unstamped(8, "i", 0)
    yield "length too large", unstamped(8, "i", 2**31 - 1)
    yield "length one short", unstamped(8, "i", len(sound()) - 13)
    yield "checksum 0", unstamped(17, "I", 0)
    yield "one bit in the records", flipped()
    for base in (1, -1, 2**63 - 1, -(2**63)):
        yield f"base offset {base}", changed(0, "q", base)
    for count in (0, -1, 4, 6, 2**31 - 1):
        yield f"count {count}", changed(57, "i", count)
    for delta in (-1, 3, 5, 2**31 - 1):
        yield f"last offset delta {delta}", changed(23, "i", delta)
    yield "a control batch", changed(21, "h", 0x20)
    yield "a transactional batch without a transaction", changed(21, "h", 0x10)
    for codec in (5, 6, 7):
        yield f"codec {codec}", changed(21, "h", codec)
    yield "log append time by the producer", claimed_time()
    yield "a producer without a sequence", changed(43, "q", 77)
    for codec in CODECS[1:]:
        yield f"records not compressed with codec {codec}", changed(21, "h", codec)
        yield f"codec {codec} cut", cut(codec)
    for codec in CODECS:
        for what, section in nested():
            yield f"{what}, codec {codec}", around(section, codec)


def claimed_time() -> bytearray:
    """No timestamps, but the attribute says that the broker has set them."""
    return build_batch(
        [Record(i, -1, b"key", b"value", ()) for i in range(5)], log_append_time_ms=NO_TIMESTAMP
    )


def flipped() -> bytearray:
    batch = sound()
    batch[-2] ^= 1
    return batch


def cut(codec: int) -> bytearray:
    """The compressed stream ends early."""
    return wrap_section(
        compress(codec, PLAIN)[:-6],
        attributes=codec,
        last_offset_delta=4,
        base_timestamp=TIME,
        max_timestamp=TIME,
        count=5,
    )


def nested() -> Iterator[tuple[str, bytes]]:
    """Records sections with junk inside."""
    yield "bytes behind the records", PLAIN + b"\0"
    yield "records without an end", PLAIN[:-1]
    yield "no records", b""
    yield "a record of size 0", record(b"") * 5
    yield "a record of size -1", record(b"", -1) * 5
    yield "a record of 2 GiB", record(b"", 2**31 - 1)
    yield "a varint without an end", b"\xff" * 40
    yield "a key of 2 GiB", record(b"\0\0\0\xfe\xff\xff\xff\x0f" + b"\x02v\0") * 5
    yield "a key of size -2", record(b"\0\0\0\x03\x02v\0") * 5
    yield "a value beyond the record", record(b"\0\0\0\x01\x7ev\0") * 5
    yield "-1 headers", record(b"\0\0\0\x01\x02v\x01") * 5
    yield "2 billion headers", record(b"\0\0\0\x01\x02v\xfe\xff\xff\xff\x0f") * 5
    yield "a header without a key", record(b"\0\0\0\x01\x02v\x02\x01\x01") * 5
    yield "bytes behind the headers", record(b"\0\0\0\x01\x02v\0\0") * 5


@pytest.mark.parametrize("version", [3, 9, 13])
def test_no_refused_batch_is_accepted(victim: Victim, version: int) -> None:
    accepted, seen = [], 0
    with victim.wire() as wire:
        topic_id = wire.create_topic("t")
        first = wire.produce_values("t", b"before")
        send = sender(victim, version, topic_id)
        for what, batch in variants():
            seen += 1
            code = send(batch)
            if code == 0:
                accepted.append(what)
        last = wire.produce_values("t", b"after")
        assert not accepted
        assert seen >= 36
        assert (first, last) == (0, 1)
        values = [each.value for batch in wire.stored_batches("t") for each in records(batch)]
        assert values == [b"before", b"after"]
    assert not [line for line in victim.lines() if "Traceback" in line]


def sender(victim: Victim, version: int, topic_id: bytes) -> Callable[[bytes | bytearray], int]:
    """Produces by name or, from v13 on, by id; the error code (-2 where the broker closes)."""

    def send(batch: bytes | bytearray) -> int:
        request = m.ProduceRequest
        place = request.PartitionProduceData(index=0, records=batch)
        topic = request.TopicProduceData(name="t", topic_id=topic_id, partition_data=[place])
        with victim.wire() as wire:
            try:
                answer = wire.send(request(acks=1, timeout_ms=1000, topic_data=[topic]), version)
            except ConnectionError:
                return -2
            return int(answer.responses[0].partition_responses[0].error_code)

    return send


def test_with_acks_0_each_closes_with_one_line(victim: Victim) -> None:
    with victim.wire() as wire:
        wire.create_topic("t")
    before = len(victim.lines())
    count = 0
    for what, batch in list(variants())[:36]:
        with victim.wire() as wire:
            wire.produce("t", batch, acks=0)
            assert wire.is_closed_by_peer(), what
        count += 1
    with victim.wire() as wire:
        assert wire.list_offset("t", -1).offset == 0
    assert len(victim.lines(before)) == count
