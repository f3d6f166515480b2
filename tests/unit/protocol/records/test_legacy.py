"""Message sets of magic 0 and 1, against kafka-python and aiokafka both ways."""

import struct

import pytest

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import Record, batches
from protocol.records.compression import compress
from protocol.records.legacy import (
    append_message,
    build_message_set,
    inner_messages,
    legacy_records,
    read_message,
    unwrapped,
)
from tests.unit.protocol.records.other_clients import MemoryRecords, aio_messages, messages

NOW = 1_700_000_000_000
ROWS = [
    (NOW, b"key", b"value"),
    (NOW + 9, None, b""),
    (NOW - 3, b"", None),
    (NOW + 2, b"k" * 90, b"v" * 70_000),
]
KAFKA_PYTHON_READS = [0, 1, 2, 3]


def expected(magic, first=0):
    return [Record(first + i, time if magic else -1, key, value) for i, (time, key, value) in enumerate(ROWS)]


def theirs(module, magic, codec):
    builder = module.LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for index, (time, key, value) in enumerate(ROWS):
        builder.append(index, timestamp=time, key=key, value=value)
    return bytes(builder.build())


def read_all(data):
    return [record for at, size in batches(data) for record in legacy_records(data, at, size)]


def xxhash_is_needed(magic, codec):
    """kafka-python and aiokafka write the checksum of magic 0 only with a package that we do not need."""
    return magic == 0 and codec == 3


@pytest.mark.parametrize("module", [messages, aio_messages])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_set_of_another_client_then_records_equal(module, magic, codec):
    if xxhash_is_needed(magic, codec):
        data = bytes(build_message_set(expected(1), magic, codec))
    else:
        data = theirs(module, magic, codec)
    assert read_all(data) == expected(magic)
    at, size = next(batches(data))
    assert read_message(data, at, size).crc_is_right


@pytest.mark.parametrize("module", [messages, aio_messages])
@pytest.mark.parametrize("magic", [0, 1])
def test_uncompressed_set_then_the_bytes_of_other_clients(module, magic):
    assert build_message_set(expected(1), magic) == theirs(module, magic, 0)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_our_set_then_kafka_python_reads_it(magic, codec):
    if xxhash_is_needed(magic, codec):
        assert read_all(build_message_set(expected(1), magic, codec)) == expected(magic)
        return
    source = MemoryRecords(bytes(build_message_set(expected(1, 100), magic, codec)))
    found = []
    while (batch := source.next_batch()) is not None:
        assert batch.validate_crc()
        found += [Record(r.offset, r.timestamp or -1, r.key, r.value) for r in batch]
    assert found == expected(magic, 100)


def test_overhead_then_14_and_22_bytes_behind_the_size():
    for magic, overhead in ((0, 14), (1, 22)):
        out = bytearray()
        append_message(out, magic, 7, NOW, b"ab", b"cde")
        assert struct.unpack_from(">qi", out) == (7, overhead + 5)
        assert len(out) == 12 + overhead + 5


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_wrapper_then_offset_of_the_last_and_relative_offsets_in_magic_1(codec):
    for magic in (0, 1):
        data = build_message_set(expected(1, 500), magic, codec)
        ((at, size),) = batches(data)
        wrapper = read_message(data, at, size)
        assert (wrapper.offset, wrapper.key, wrapper.codec) == (503, None, codec)
        assert wrapper.timestamp == (NOW + 9 if magic else -1)
        lying = [message.offset for message in unwrapped(wrapper)]
        assert lying == ([0, 1, 2, 3] if magic else [500, 501, 502, 503])
        assert [message.offset for message in inner_messages(wrapper)] == [500, 501, 502, 503]


def test_gaps_in_offsets_then_kept_in_a_wrapper():
    rows = [Record(offset, NOW, b"k", b"v") for offset in (50, 53, 59)]
    assert read_all(build_message_set(rows, 1, 1)) == rows


def test_log_append_time_then_that_time_for_every_message():
    for codec in (0, 1):
        data = build_message_set(expected(1), 1, codec, log_append_time_ms=NOW + 70)
        assert {record.timestamp for record in read_all(data)} == {NOW + 70}


def test_no_records_then_no_bytes():
    assert build_message_set([], 1) == build_message_set([], 1, 2) == b""


def test_zstd_then_unsupported_compression_type():
    with pytest.raises(InvalidRecords) as caught:
        build_message_set(expected(1), 1, 4)
    assert caught.value.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def wrapped(inner, magic=1, codec=1, offset=0, value=None):
    out = bytearray()
    append_message(
        out, magic, offset, NOW, None, compress(codec, inner) if value is None else value or None, codec
    )
    return read_message(out, 0, len(out))


def entry(magic=1, offset=0, codec=0):
    out = bytearray()
    append_message(out, magic, offset, NOW, b"k", b"v", codec)
    return bytes(out)


@pytest.mark.parametrize(
    ("wrapper", "error"),
    [
        (wrapped(b""), ErrorCode.INVALID_RECORD),
        (wrapped(b"", value=b""), ErrorCode.INVALID_RECORD),
        (wrapped(entry(0)), ErrorCode.INVALID_RECORD),
        (wrapped(entry(1), magic=0), ErrorCode.INVALID_RECORD),
        (wrapped(entry(codec=1)), ErrorCode.INVALID_RECORD),
        (wrapped(entry(), codec=4), ErrorCode.INVALID_RECORD),
        (wrapped(entry(offset=5), offset=3), ErrorCode.INVALID_RECORD),
        (wrapped(entry()[:12][:8] + b"\0\0\0\5" + entry()[12:]), ErrorCode.CORRUPT_MESSAGE),
        (wrapped(entry(), codec=5, value=b"x"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (wrapped(entry(), value=b"junk"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_wrapper_that_is_wrong_then_its_code(wrapper, error):
    with pytest.raises(InvalidRecords) as caught:
        list(unwrapped(wrapper))
    assert caught.value.error is error


def test_wrapper_offset_0_or_cut_inner_message_then_accepted():
    assert len(inner_messages(wrapped(entry(offset=0) + entry(offset=1), offset=0))) == 2
    assert len(inner_messages(wrapped(entry() + entry()[:-1]))) == 1


def test_bomb_in_a_wrapper_then_too_large():
    with pytest.raises(InvalidRecords) as caught:
        list(unwrapped(wrapped(bytes(40 << 20))))
    assert caught.value.error is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    "data",
    [
        entry()[:-1],
        entry()[:20],
        entry()[:16] + b"\2" + entry()[17:],
        entry()[:26] + b"\xff\xff\xff\xfe" + entry()[30:],
        entry()[:26] + b"\0\0\0\7" + entry()[30:],
        entry(0)[:18] + b"\x7f\xff\xff\xff" + entry(0)[22:],
    ],
)
def test_message_whose_lengths_lie_then_corrupt_message(data):
    with pytest.raises(InvalidRecords) as caught:
        read_message(data, 0, len(data))
    assert caught.value.error is ErrorCode.CORRUPT_MESSAGE


def test_entry_longer_than_the_buffer_then_corrupt_message():
    with pytest.raises(InvalidRecords):
        list(legacy_records(entry()[:-1]))


def test_wrong_checksum_then_told():
    data = bytearray(entry())
    data[-1] ^= 1
    assert not read_message(data, 0, len(data)).crc_is_right
