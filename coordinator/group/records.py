"""Keys and values of __consumer_offsets as they lie in the log.

A key begins with an i16, its record type; a value with an i16, its own version. Offsets (types 0 and 1) are
read and written by hand, because a load reads millions of them and commits are frequent; everything else
goes through `protocol.messages`. Types and value versions that are not known, written by a newer broker or
by features this one does not have, are passed over with one warning each.

Written: key type 1; value version 3, or 1 where the commit has an expiry time of its own, which has no
place for the leader epoch. Group values are written at version 3.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import NamedTuple, TypeAlias

from coordinator.result import CoordinatorRecord
from protocol import messages as m
from protocol.errors import MalformedMessage

OFFSET_KEYS = (b"\0\1", b"\0\0")
"""What keys of offsets begin with."""
GROUP_KEY_TYPE = 2
GROUP_VALUE_VERSION = 3
NO_EXPIRY = -1
NO_LEADER_EPOCH = -1

_log = logging.getLogger(__name__)
_I16, _I32, _I64 = Struct(">h"), Struct(">i"), Struct(">q")
_TYPE_AND_LENGTH = Struct(">hh")
_TWO_TIMES = Struct(">qq")
_LAST_MS = (1 << 63) - 1  # a client may ask for any retention
_PLAIN_HEAD = Struct(">hqh")  # version, offset, length of metadata
_EPOCH_HEAD = Struct(">hqih")  # version, offset, leader epoch, length of metadata
_NO_METADATA = Struct(">hqihq")  # the same without metadata, and the time
_EPOCH_VERSION = 3
_OFFSET_VERSIONS = range(5)
_REMEMBERED = 8192  # groups with a topic, as they stand before the partition in a key: 1 us less each
_LENGTH_REMEMBERED = 600  # of it, or of a group's name; longer ones, up to 64 KiB, are not worth the room
_GROUP_VERSIONS = range(5)


class OffsetKey(NamedTuple):
    """What an offset is committed for."""

    group: str
    topic: str
    partition: int


class Offset(NamedTuple):
    """A committed offset: times are ms since the epoch, `expire_ms` -1 stands for the broker's rule.

    `record_offset` is where its record lies in the log; it orders commits against transactions.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int
    expire_ms: int = NO_EXPIRY
    record_offset: int = -1


Stored: TypeAlias = tuple[int, int, str, int, int, int]
"""An Offset as state keeps it: an exact tuple of plain values, which the garbage collector stops tracking. It
never does that for a NamedTuple: a full collection over a million of them held the loop for 370 ms."""


def key_type(key: bytes) -> int:
    """The record type a key begins with."""
    if len(key) < _I16.size:
        raise MalformedMessage(f"A record key of {len(key)} bytes has no type")
    kind: int = _I16.unpack_from(key)[0]
    return kind


def read_offset_key(key: bytes) -> OffsetKey:
    """A key of type 0 or 1. Raises MalformedMessage."""
    try:
        _, length = _TYPE_AND_LENGTH.unpack_from(key)
        at = 4 + length
        group = key[4:at].decode()
        topic_length = _I16.unpack_from(key, at)[0]
        end = at + 2 + topic_length
        topic = key[at + 2 : end].decode()
        partition: int = _I32.unpack_from(key, end)[0]
    except (StructError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"An offset's key does not parse: {error}") from None
    if length < 0 or topic_length < 0:
        raise MalformedMessage("An offset's key has no group or no topic")
    return OffsetKey(group, topic, partition)


def _group_and_topic(before: bytes) -> tuple[str, str] | None:
    """What stands before the partition of a key; None where that is not all of it."""
    key = read_offset_key(before + bytes(_I32.size))
    return (key.group, key.topic) if before == _before_partition(key.group, key.topic) else None


_remembered_group_and_topic = lru_cache(_REMEMBERED)(_group_and_topic)


def known_offset_key(key: bytes) -> tuple[str, str, int]:
    """The fields of an OffsetKey whose group and topic come again: those of commits, not those of a load."""
    if _I32.size < len(key) <= _LENGTH_REMEMBERED:
        names = _remembered_group_and_topic(key[: -_I32.size])
        if names is not None:
            return *names, _I32.unpack_from(key, len(key) - _I32.size)[0]
    return read_offset_key(key)


def read_offset_value(value: bytes, record_offset: int, unknown: UnknownRecords) -> Stored | None:
    """An Offset from a value; None for a version that is not known. Raises MalformedMessage."""
    try:
        if len(value) == _NO_METADATA.size:  # as nearly always
            version, offset, leader_epoch, length, commit_ms = _NO_METADATA.unpack(value)
            if version == _EPOCH_VERSION and not length:
                return offset, leader_epoch, "", commit_ms, NO_EXPIRY, record_offset
        version = _I16.unpack_from(value)[0]
        if version == _EPOCH_VERSION:
            _, offset, leader_epoch, length = _EPOCH_HEAD.unpack_from(value)
            at = _EPOCH_HEAD.size
        elif version in (0, 1, 2):
            _, offset, length = _PLAIN_HEAD.unpack_from(value)
            at, leader_epoch = _PLAIN_HEAD.size, NO_LEADER_EPOCH
        else:
            return _read_flexible(value, version, record_offset, unknown)
        metadata = value[at : at + length].decode() if length else ""
        commit_ms = _I64.unpack_from(value, at + length)[0]
        expire_ms = _I64.unpack_from(value, at + length + 8)[0] if version == 1 else NO_EXPIRY
    except (StructError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"An offset's value does not parse: {error}") from None
    if length < 0:
        raise MalformedMessage("An offset's value has no metadata")
    return offset, leader_epoch, metadata, commit_ms, expire_ms, record_offset


def _read_flexible(value: bytes, version: int, record_offset: int, unknown: UnknownRecords) -> Stored | None:
    if version not in _OFFSET_VERSIONS:
        unknown.see("value version", 1, version)
        return None
    read, _ = m.OffsetCommitValue.decode(version, value, _I16.size)
    return (
        read.offset, read.leader_epoch, read.metadata, read.commit_timestamp, NO_EXPIRY, record_offset
    )  # fmt: skip


def offset_record(key: OffsetKey, offset: Offset) -> CoordinatorRecord:
    """The record that commits an offset."""
    return CoordinatorRecord(offset_key(*key), offset_value(*offset[:5]))


def offset_value(offset: int, leader_epoch: int, metadata: str, commit_ms: int, expire_ms: int) -> bytes:
    """The value of a record that commits an offset; the fields are those of `Offset`."""
    if expire_ms == NO_EXPIRY:
        if not metadata:
            return _NO_METADATA.pack(_EPOCH_VERSION, offset, leader_epoch, 0, commit_ms)
        data = metadata.encode()
        return _EPOCH_HEAD.pack(_EPOCH_VERSION, offset, leader_epoch, len(data)) + data + _I64.pack(commit_ms)
    data = metadata.encode()
    times = _TWO_TIMES.pack(commit_ms, min(expire_ms, _LAST_MS))
    return _PLAIN_HEAD.pack(1, offset, len(data)) + data + times


def offset_tombstones(group: str, partitions: Iterable[tuple[str, int]]) -> list[CoordinatorRecord]:
    """The records that remove offsets of a group, committed or pending in a transaction."""
    return [CoordinatorRecord(offset_key(group, topic, index), None) for topic, index in partitions]


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """The key of the records about an offset; the fields are those of `OffsetKey`."""
    if len(group) <= _LENGTH_REMEMBERED:
        return _remembered_before_partition(group, topic) + _I32.pack(partition)
    return _before_partition(group, topic) + _I32.pack(partition)


def _before_partition(group: str, topic: str) -> bytes:
    first, second = group.encode(), topic.encode()
    return _TYPE_AND_LENGTH.pack(1, len(first)) + first + _I16.pack(len(second)) + second


_remembered_before_partition = lru_cache(_REMEMBERED)(_before_partition)


def group_record(key: m.GroupMetadataKey, value: m.GroupMetadataValue | None) -> CoordinatorRecord:
    """The record of a classic group; without a value, its tombstone."""
    encoded = None
    if value is not None:
        encoded = _I16.pack(GROUP_VALUE_VERSION) + value.encode(GROUP_VALUE_VERSION)
    return CoordinatorRecord(_I16.pack(GROUP_KEY_TYPE) + key.encode(0), encoded)


def read_group_key(key: bytes) -> str:
    """The group of a key of type 2. Raises MalformedMessage."""
    read, _ = m.GroupMetadataKey.decode(0, key, _I16.size)
    return read.group


def read_group_value(value: bytes, unknown: UnknownRecords) -> m.GroupMetadataValue | None:
    """A value of type 2; None for a version that is not known. Raises MalformedMessage."""
    version = key_type(value)
    if version not in _GROUP_VERSIONS:
        unknown.see("value version", GROUP_KEY_TYPE, version)
        return None
    read, _ = m.GroupMetadataValue.decode(version, value, _I16.size)
    return read


class UnknownRecords:
    """Counts what is passed over, and warns once for each kind."""

    def __init__(self, warn: Callable[[str], None] = _log.warning) -> None:
        self._warn = warn
        self.seen: dict[tuple[str, int, int], int] = {}

    def see(self, what: str, kind: int, number: int) -> None:
        """One record with an unknown `what` ("key type" or "value version") was passed over."""
        count = self.seen.get((what, kind, number), 0)
        self.seen[what, kind, number] = count + 1
        if not count:
            self._warn(
                f"Records of __consumer_offsets with {what} {number} (record type {kind}) are not known "
                "to this broker; they are kept in the log and have no effect"
            )
