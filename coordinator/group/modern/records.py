"""Records of the newer groups in __consumer_offsets: keys by hand, as all of them are a group and perhaps a
second name; values through `protocol.messages`, at version 0, the only one there is.

Consumer groups use types 3 to 8 and 16, share groups 9 to 15; `Kinds` names those that both have.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Any, Final, NamedTuple

from coordinator.group.modern.assignment import Assignment, from_wire, to_wire
from coordinator.group.records import key_type
from coordinator.result import CoordinatorRecord
from protocol import messages as m
from protocol.errors import MalformedMessage

VALUE_VERSION: Final = 0
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = 0
_HEAD = Struct(">hh")
_LENGTH = Struct(">h")
_VALUE_HEAD: Final = VALUE_VERSION.to_bytes(2, "big")


@dataclass(frozen=True, slots=True)
class Kinds:
    """Record types of one protocol; `prefix` begins the names of their messages."""

    prefix: str
    group: int
    member: int
    target_epoch: int
    target: int
    current: int

    @property
    def common(self) -> tuple[int, ...]:
        """The types that `ModernTables` replays."""
        return (self.group, self.member, self.target_epoch, self.target, self.current)


CONSUMER = Kinds("ConsumerGroup", 3, 5, 6, 7, 8)
SHARE = Kinds("ShareGroup", 11, 10, 12, 13, 14)


class GroupEpoch(NamedTuple):
    """Rises with everything that calls for a new assignment. `metadata_hash` stands for the topics seen."""

    epoch: int
    metadata_hash: int = 0


class TargetEpoch(NamedTuple):
    """The group epoch that the target assignment was made for, and when (ms; 0: not known)."""

    epoch: int
    timestamp_ms: int = NO_TIMESTAMP


def group_key(kind: int, group_id: str, name: str | None = None) -> bytes:
    """A key of any of these types; `name` is the member id, or a regular expression."""
    group = group_id.encode()
    if name is None:
        return _HEAD.pack(kind, len(group)) + group
    second = name.encode()
    return _HEAD.pack(kind, len(group)) + group + _LENGTH.pack(len(second)) + second


def read_key(key: bytes, *, named: bool) -> tuple[str, str]:
    """Group and second name ("" where the type has none). Raises MalformedMessage."""
    try:
        _, length = _HEAD.unpack_from(key)
        at = _HEAD.size + length
        group, name = key[_HEAD.size : at].decode(), ""
        if named:
            second = _LENGTH.unpack_from(key, at)[0]
            at += _LENGTH.size
            name = key[at : at + second].decode()
            at += second
    except (StructError, UnicodeDecodeError) as error:
        raise MalformedMessage(f"A group's key does not parse: {error}") from None
    if length < 0 or at > len(key) or (named and second < 0):
        raise MalformedMessage("A group's key is cut off")
    return group, name


def record(kind: int, group_id: str, name: str | None, value: Any) -> CoordinatorRecord:
    """A record with a value of `protocol.messages`."""
    return CoordinatorRecord(group_key(kind, group_id, name), _VALUE_HEAD + value.encode(VALUE_VERSION))


def tombstone(kind: int, group_id: str, name: str | None = None) -> CoordinatorRecord:
    """The record that removes what the same key set."""
    return CoordinatorRecord(group_key(kind, group_id, name), None)


def read_value(cls: Any, value: bytes) -> Any:
    """A value's message; None where its version is not known. Raises MalformedMessage."""
    if key_type(value) != VALUE_VERSION:
        return None
    read, _ = cls.decode(VALUE_VERSION, value, _LENGTH.size)
    return read


def message(kinds: Kinds, name: str) -> Any:
    """The message class of one of the protocols."""
    return getattr(m, kinds.prefix + name)


def group_epoch_record(kinds: Kinds, group_id: str, epoch: GroupEpoch) -> CoordinatorRecord:
    """Type 3 or 11."""
    value = message(kinds, "MetadataValue")(epoch=epoch.epoch, metadata_hash=epoch.metadata_hash)
    return record(kinds.group, group_id, None, value)


def target_epoch_record(kinds: Kinds, group_id: str, epoch: TargetEpoch) -> CoordinatorRecord:
    """Type 6 or 12."""
    value = message(kinds, "TargetAssignmentMetadataValue")(
        assignment_epoch=epoch.epoch, assignment_timestamp=epoch.timestamp_ms
    )
    return record(kinds.target_epoch, group_id, None, value)


def target_record(kinds: Kinds, group_id: str, member_id: str, target: Assignment) -> CoordinatorRecord:
    """Type 7 or 13."""
    cls = message(kinds, "TargetAssignmentMemberValue")
    value = cls(topic_partitions=to_wire(target, cls.TopicPartition))
    return record(kinds.target, group_id, member_id, value)


def read_group_epoch(kinds: Kinds, value: bytes) -> GroupEpoch | None:
    """Type 3 or 11. Raises MalformedMessage."""
    read = read_value(message(kinds, "MetadataValue"), value)
    return None if read is None else GroupEpoch(read.epoch, read.metadata_hash)


def read_target_epoch(kinds: Kinds, value: bytes) -> TargetEpoch | None:
    """Type 6 or 12. Raises MalformedMessage."""
    read = read_value(message(kinds, "TargetAssignmentMetadataValue"), value)
    return None if read is None else TargetEpoch(read.assignment_epoch, read.assignment_timestamp)


def read_target(kinds: Kinds, value: bytes) -> Assignment | None:
    """Type 7 or 13. Raises MalformedMessage."""
    read = read_value(message(kinds, "TargetAssignmentMemberValue"), value)
    return None if read is None else from_wire(read.topic_partitions)
