"""Answers for clients that do not know the newest record format: conversion, and what cannot be converted.

Fetch v0-1 carries messages of format 0, v2-3 of format 1 (protocol.md 3.6); zstd exists for v10 and later
only. Conversion reads the slice and decompresses it, so it runs in a thread.
"""

from __future__ import annotations

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import CODEC_MASK
from protocol.records.compression import ZSTD
from protocol.records.convert import down_convert
from replication.fetch import Row
from runtime.files import FileRegion
from storage.log_config import LogConfig
from storage.read import SliceData

MAGIC_1_FROM = 2
STRICT_LIMIT_UPTO = 2
_ATTRIBUTES_END = 23


def unsupported_zstd(row: Row, config: LogConfig) -> bool:
    """Whether the topic is set to zstd, or the first batch of the row is compressed with it."""
    if config.compression_type == "zstd":
        return True
    data = row.data
    if isinstance(data, FileRegion):
        head: bytes | bytearray | memoryview = data.handle.read_at(data.position, _ATTRIBUTES_END)
    else:
        head = data[0] if isinstance(data, list) else data
    return len(head) >= _ATTRIBUTES_END and head[16] == 2 and head[22] & CODEC_MASK == ZSTD


def to_old_format(data: SliceData, fetch_offset: int, version: int, max_bytes: int) -> bytes | ErrorCode:
    """The records as messages of the version's format, or the error of the partition.

    v0-2: cut at `max_bytes`, also within a message, as those clients expect.
    """
    if isinstance(data, FileRegion):
        batches = data.read()
    else:
        batches = data if isinstance(data, bytes) else b"".join(data)
    magic = 1 if version >= MAGIC_1_FROM else 0
    try:
        converted = bytes(down_convert(batches, magic, fetch_offset))
    except InvalidRecords as error:
        return error.error
    return converted[:max_bytes] if version <= STRICT_LIMIT_UPTO else converted
