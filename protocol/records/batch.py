"""Record batches of magic 2: the header, finding batches in a buffer, reading their records.

Layout (big-endian; a batch is self-delimiting, batches follow each other without anything between):

    0 baseOffset i64 | 8 batchLength i32, bytes after this field | 12 partitionLeaderEpoch i32
    16 magic i8 = 2 | 17 crc u32, CRC-32C from 21 to the end | 21 attributes i16 | 23 lastOffsetDelta i32
    27 baseTimestamp i64 | 35 maxTimestamp i64 | 43 producerId i64 | 51 producerEpoch i16
    53 baseSequence i32 | 57 recordCount i32 | 61 records, compressed as one block if a codec is set

Attributes: bits 0-2 codec, 3 timestamp type (1 = LogAppendTime), 4 transactional, 5 control, 6 baseTimestamp
is the delete horizon. Offset, length, epoch and magic lie outside the checksum, so assigning offsets costs no
CRC.

Messages of magic 0 and 1 (`legacy.py`) begin with the same offset, length and, at 16, magic, so that
`batches` walks over either.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.compression import decompress_chunks, record_blocks
from protocol.records.crc import Buffer
from protocol.records.varints import VARINT_BYTES, BadVarint, read_varint, read_varlong

HEADER = Struct(">qiibIhiqqqhii")
HEADER_SIZE = 61
LOG_OVERHEAD = 12  # offset and length field, before the bytes that the length counts
LENGTH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT = 8, 16, 17, 21, 23
MAX_TIMESTAMP_AT, PRODUCER_AT, COUNT_AT = 35, 43, 57
HEADER_SIZE_UP_TO_MAGIC = 17
SMALLEST_LENGTH = 14  # batchLength of a message of magic 0 without key and value

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
SEQUENCES = 1 << 31  # sequence numbers wrap to 0 here

_PREFIX = Struct(">qi")


class BatchHeader(NamedTuple):
    """The 61 bytes in front of the records, in their order on the wire."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 when the batch has none."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCES

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)


class Record(NamedTuple):
    """One record as a reader sees it. Timestamps in ms, -1 for none; keys, values and header values may be
    null.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_header(buf: Buffer, at: int = 0) -> BatchHeader:
    """The header of the batch of magic 2 at `at`. The caller has made sure that 61 bytes are there."""
    return BatchHeader._make(HEADER.unpack_from(buf, at))


def next_size(buf: Buffer, at: int, end: int) -> int:
    """Bytes of the batch at `at`; 0 when no whole batch is left, as where a fetch was cut.

    Raises InvalidRecords (CORRUPT_MESSAGE) for a length or magic that no batch can have.
    """
    left = end - at
    if left < LOG_OVERHEAD:
        return 0
    length = _PREFIX.unpack_from(buf, at)[1]
    if length < SMALLEST_LENGTH:
        raise InvalidRecords(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({SMALLEST_LENGTH})",
        )
    if left < HEADER_SIZE_UP_TO_MAGIC:
        return 0
    magic = buf[at + MAGIC_AT]
    if magic > 2:
        signed = magic - 256 if magic > 127 else magic
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {signed}")
    size: int = length + LOG_OVERHEAD
    return size if size <= left else 0


def batches(buf: Buffer, at: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """(position, size) of every whole batch or old message; a cut one at the end is left out.

    Raises InvalidRecords where `next_size` does.
    """
    if end is None:
        end = len(buf)
    while size := next_size(buf, at, end):
        yield at, size
        at += size


def records(buf: Buffer, at: int = 0) -> Iterator[Record]:
    """The records of the batch of magic 2 at `at`, decompressed piece by piece. The checksum is not looked
    at.

    Raises InvalidRecords where the bytes do not parse. Header keys that are no UTF-8 come with replacement
    marks.
    """
    head = read_header(buf, at)
    size = head.size
    if size < HEADER_SIZE or size > len(buf) - at:
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"A batch of {size} bytes with {len(buf) - at} there")
    count = 0
    fixed_time = head.max_timestamp if head.is_log_append_time else None
    section = memoryview(buf)[at + HEADER_SIZE : at + size]
    for block, ended in record_blocks(decompress_chunks(head.codec, section)):
        pos, end = 0, len(block)
        while count < head.record_count:
            try:
                found = _read_record(block, pos, end)
            except BadVarint as error:
                raise _invalid(f"Found invalid record structure: {error}") from None
            if found is None:
                break
            pos, offset_delta, time_delta, key, value, headers = found
            timestamp = wrap64(head.base_timestamp + time_delta) if fixed_time is None else fixed_time
            count += 1
            yield Record(head.base_offset + offset_delta, timestamp, key, value, headers)
        if count == head.record_count and pos < end:
            raise _invalid("Incorrect declared batch size, records still remaining in file")
        ended.append(pos)
    if count < head.record_count:
        raise _invalid("Incorrect declared batch size, premature EOF reached")


def wrap64(number: int) -> int:
    """A number as Java's 64-bit arithmetic leaves it."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _read_record(
    buf: Buffer, at: int, end: int
) -> tuple[int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]] | None:
    """(position after it, offset delta, time delta, key, value, headers); None if the record is not whole."""
    try:
        length, at = read_varint(buf, at, end)
    except BadVarint:
        if end - at < VARINT_BYTES:
            return None
        raise
    if length < 0:
        raise _invalid(f"Invalid record size: {length}")
    if length > end - at:
        return None
    end = at + length
    time_delta, at = read_varlong(buf, at + 1, end)
    offset_delta, at = read_varint(buf, at, end)
    key, at = _read_nullable(buf, at, end)
    value, at = _read_nullable(buf, at, end)
    count, at = read_varint(buf, at, end)
    if not 0 <= count <= end - at:
        raise _invalid(f"Found invalid number of record headers {count}")
    headers = []
    for _ in range(count):
        name, at = _read_nullable(buf, at, end)
        if name is None:
            raise _invalid("Invalid negative header key size -1")
        content, at = _read_nullable(buf, at, end)
        headers.append((name.decode("utf-8", "replace"), content))
    if at != end:
        raise _invalid(f"Invalid record size: {end - at} bytes are left over")
    return at, offset_delta, time_delta, key, value, tuple(headers)


def _read_nullable(buf: Buffer, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = read_varint(buf, at, end)
    if length == -1:
        return None, at
    if not 0 <= length <= end - at:
        raise _invalid(f"A length of {length} with {end - at} bytes left")
    return bytes(buf[at : at + length]), at + length


def _invalid(message: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, message)
