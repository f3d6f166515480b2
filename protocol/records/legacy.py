"""Message sets of magic 0 and 1, the formats before record batches: reading and writing.

An entry: offset i64 | size i32, bytes after this field | crc u32, CRC-32 from the magic to the end | magic i8
| attributes i8 | [magic 1: timestamp i64] | key length i32, key | value length i32, value; a length of -1 is
null. Attributes: bits 0-2 codec (zstd does not exist here), in magic 1 bit 3 timestamp type.

Compression wraps: one entry with the codec in its attributes, whose value is a compressed message set. Its
offset is that of its last inner message. Inner offsets are absolute in magic 0, relative 0, 1, 2... in magic
1, where absolute = wrapper - last inner + inner; but producers may leave the wrapper's offset 0. A wrapper of
LogAppendTime gives its timestamp to all its messages. Wrappers do not nest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_TIMESTAMP,
    SMALLEST_LENGTH,
    Record,
)
from protocol.records.compression import DECOMPRESS_LIMIT, ZSTD, compressor, decompress
from protocol.records.crc import Buffer, crc32

_PREFIX = Struct(">qiIbb")
_PREFIX_SIZE = _PREFIX.size
_LENGTH = Struct(">i")
_TIMESTAMP = Struct(">q")
_CHECKED_FROM = 16  # the CRC covers the magic and what follows


class Message(NamedTuple):
    """One entry as it lies in the set. `offset` is what is written there."""

    offset: int
    magic: int
    attributes: int
    timestamp: int  # -1 in magic 0
    key: bytes | None
    value: bytes | None
    crc_is_right: bool

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME_BIT)


def read_message(buf: Buffer, at: int, size: int) -> Message:
    """The entry in buf[at : at + size], whose magic is 0 or 1. Raises InvalidRecords where lengths
    contradict.
    """
    end = at + size
    if size < LOG_OVERHEAD + SMALLEST_LENGTH:
        raise _corrupt(f"a message of {size} bytes")
    offset, _, crc, magic, attributes = _PREFIX.unpack_from(buf, at)
    if magic not in (0, 1):
        raise _corrupt(f"magic {magic}")
    right = crc32(memoryview(buf)[at + _CHECKED_FROM : end]) == crc
    at += _PREFIX_SIZE
    timestamp = NO_TIMESTAMP
    if magic:
        if end - at < _TIMESTAMP.size:
            raise _corrupt(f"a message of {size} bytes")
        timestamp = _TIMESTAMP.unpack_from(buf, at)[0]
        at += _TIMESTAMP.size
    key, at = _read_bytes(buf, at, end)
    value, at = _read_bytes(buf, at, end)
    return Message(offset, magic, attributes, timestamp, key, value, right)


def messages_in(buf: Buffer, at: int, end: int, wrapper_magic: int) -> Iterator[Message]:
    """The whole entries of what a wrapper held; a cut one at the end is left out, as Kafka leaves it."""
    while end - at >= LOG_OVERHEAD:
        length = _LENGTH.unpack_from(buf, at + 8)[0]
        if length < SMALLEST_LENGTH:
            raise _corrupt(f"record size {length} is less than the minimum record overhead")
        if length > end - at - LOG_OVERHEAD:
            return
        magic = buf[at + MAGIC_AT]
        if magic != wrapper_magic:
            raise _invalid(f"Compressed message magic {magic} does not match wrapper magic {wrapper_magic}")
        yield read_message(buf, at, length + LOG_OVERHEAD)
        at += length + LOG_OVERHEAD


def unwrapped(wrapper: Message, limit: int = DECOMPRESS_LIMIT) -> Iterator[Message]:
    """The messages in a wrapper as they lie in it, but with the timestamps that readers see.

    Raises InvalidRecords: 87 for a wrapper that is empty, nested, of zstd, or contradicts its messages; 2 for
    a message whose framing is broken; 10 beyond `limit` plain bytes; whatever the codec raises.
    """
    if wrapper.codec == ZSTD:
        raise _invalid(f"Invalid wrapper compressionType {wrapper.codec} of magic {wrapper.magic}")
    if wrapper.value is None:
        raise _invalid(f"Found invalid compressed record set with null value (magic = {wrapper.magic})")
    plain = decompress(wrapper.codec, wrapper.value, limit, wrapper.magic)
    last = None
    for message in messages_in(plain, 0, len(plain), wrapper.magic):
        if message.codec:
            raise _invalid(
                "Compressed outer record should not have an inner record with a compression attribute set"
            )
        last = message.offset
        yield message._replace(timestamp=wrapper.timestamp) if wrapper.is_log_append_time else message
    if last is None:
        raise _invalid("Found invalid compressed record set with no inner records")
    if wrapper.magic and wrapper.offset and wrapper.offset < last:
        raise _invalid(
            f"Found invalid wrapper offset in compressed v1 message set, wrapper offset {wrapper.offset} "
            f"is less than the last inner message offset {last}"
        )


def inner_messages(wrapper: Message, limit: int = DECOMPRESS_LIMIT) -> list[Message]:
    """The messages in a wrapper of a log, with absolute offsets. Raises as `unwrapped` does."""
    found = list(unwrapped(wrapper, limit))
    if wrapper.magic and wrapper.offset:
        first = wrapper.offset - found[-1].offset
        found = [message._replace(offset=first + message.offset) for message in found]
    return found


def legacy_records(
    buf: Buffer, at: int = 0, size: int | None = None, limit: int = DECOMPRESS_LIMIT
) -> Iterator[Record]:
    """The records of one entry (a message, or a wrapper with all of its messages) as a reader sees them."""
    if size is None:
        size = LOG_OVERHEAD + int(_LENGTH.unpack_from(buf, at + 8)[0])
    if size > len(buf) - at:
        raise _corrupt(f"a message of {size} bytes with {len(buf) - at} there")
    message = read_message(buf, at, size)
    for one in inner_messages(message, limit) if message.codec else [message]:
        yield Record(one.offset, one.timestamp, one.key, one.value)


def append_message(
    out: bytearray,
    magic: int,
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: Buffer | None,
    attributes: int = 0,
) -> None:
    """Encode one entry at the end of a message set. `timestamp` is dropped for magic 0."""
    at = len(out)
    out += bytes(_PREFIX_SIZE)
    if magic:
        out += _TIMESTAMP.pack(timestamp)
    for field in (key, value):
        out += _LENGTH.pack(-1 if field is None else len(field))
        out += field or b""
    _PREFIX.pack_into(out, at, offset, len(out) - at - LOG_OVERHEAD, 0, magic, attributes)
    crc = crc32(memoryview(out)[at + _CHECKED_FROM :])
    _PREFIX.pack_into(out, at, offset, len(out) - at - LOG_OVERHEAD, crc, magic, attributes)


def build_message_set(
    records: Iterable[Record], magic: int, codec: int = 0, log_append_time_ms: int | None = None
) -> bytearray:
    """A message set of these records, which keep their offsets; compressed, it is one wrapper.

    Headers are dropped. `log_append_time_ms` makes that the timestamp type, and the time, of every message
    (magic 1). Records are taken one by one and compressed at once.
    """
    if codec == ZSTD:
        raise InvalidRecords(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd does not exist in messages of magic {magic}"
        )
    type_bit = LOG_APPEND_TIME_BIT if magic and log_append_time_ms is not None else 0
    stream = compressor(codec, magic=magic) if codec else None
    out = bytearray()
    inner = bytearray()
    first = last = latest = None
    for record in records:
        last = record.offset
        if first is None:
            first = last
        latest = record.timestamp if latest is None else max(latest, record.timestamp)
        if stream is None:
            time = record.timestamp if log_append_time_ms is None else log_append_time_ms
            append_message(out, magic, last, time, record.key, record.value, type_bit)
            continue
        inner.clear()
        offset = last - first if magic else last
        append_message(inner, magic, offset, record.timestamp, record.key, record.value, type_bit)
        out += stream.compress(inner)
    if stream is None or last is None or latest is None:
        return out
    out += stream.flush()
    wrapped = bytearray()
    time = latest if log_append_time_ms is None else log_append_time_ms
    append_message(wrapped, magic, last, time, None, out, codec | type_bit)
    return wrapped


def _read_bytes(buf: Buffer, at: int, end: int) -> tuple[bytes | None, int]:
    if end - at < _LENGTH.size:
        raise _corrupt("a message without the length of its key or value")
    length = _LENGTH.unpack_from(buf, at)[0]
    at += _LENGTH.size
    if length == -1:
        return None, at
    if not 0 <= length <= end - at:
        raise _corrupt(f"a length of {length} with {end - at} bytes left")
    return bytes(buf[at : at + length]), at + length


def _corrupt(why: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt ({why})")


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)
