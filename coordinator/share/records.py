"""Records of `__share_group_state`: snapshots (type 0) and updates (type 1) of share partitions.

Keys and values begin with an i16: a key's is the record's type, a value's its version. Both types are keyed
by group, topic id and partition; a snapshot without a value ends the share partition.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from coordinator.result import CoordinatorRecord
from coordinator.share.state import ShareState
from protocol import messages as m
from protocol.errors import MalformedMessage
from protocol.uuids import uuid_to_text

SNAPSHOT: Final = 0
UPDATE: Final = 1
VERSION: Final = 0

_I16: Final = Struct(">h")


class ShareKey(NamedTuple):
    """One share partition: what a group reads of one partition."""

    group_id: str
    topic_id: bytes
    partition: int

    def text(self) -> str:
        """What is hashed to find the coordinator."""
        return f"{self.group_id}:{uuid_to_text(self.topic_id)}:{self.partition}"


def record_type(data: bytes) -> int:
    """The i16 in front of a key or value. Raises MalformedMessage."""
    try:
        number: int = _I16.unpack_from(data)[0]
    except StructError:
        raise MalformedMessage("A key or value has less than two bytes") from None
    return number


def read_key(key: bytes) -> ShareKey:
    """The share partition of a key of either type. Raises MalformedMessage."""
    read, _ = m.ShareSnapshotKey.decode(0, key, _I16.size)
    return ShareKey(read.group_id, read.topic_id, read.partition)


def read_snapshot(value: bytes) -> m.ShareSnapshotValue | None:
    """None for a version that is not known. Raises MalformedMessage."""
    if record_type(value) != VERSION:
        return None
    read, _ = m.ShareSnapshotValue.decode(VERSION, value, _I16.size)
    return read


def read_update(value: bytes) -> m.ShareUpdateValue | None:
    """None for a version that is not known. Raises MalformedMessage."""
    if record_type(value) != VERSION:
        return None
    read, _ = m.ShareUpdateValue.decode(VERSION, value, _I16.size)
    return read


def snapshot_record(key: ShareKey, state: ShareState) -> CoordinatorRecord:
    """The whole state of a share partition."""
    value = m.ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.create_ms,
        write_timestamp=state.write_ms,
        state_batches=[m.ShareSnapshotValue.StateBatch(**each._asdict()) for each in state.batches],
    )
    return CoordinatorRecord(_key(SNAPSHOT, key), _I16.pack(VERSION) + value.encode(VERSION))


def update_record(key: ShareKey, change: ShareState) -> CoordinatorRecord:
    """What has changed: leader epoch, start offset and count as they are now, and the new batches."""
    value = m.ShareUpdateValue(
        snapshot_epoch=change.snapshot_epoch,
        leader_epoch=change.leader_epoch,
        start_offset=change.start_offset,
        delivery_complete_count=change.complete_count,
        state_batches=[m.ShareUpdateValue.StateBatch(**each._asdict()) for each in change.batches],
    )
    return CoordinatorRecord(_key(UPDATE, key), _I16.pack(VERSION) + value.encode(VERSION))


def tombstone(key: ShareKey) -> CoordinatorRecord:
    """The end of a share partition."""
    return CoordinatorRecord(_key(SNAPSHOT, key), None)


def _key(kind: int, key: ShareKey) -> bytes:
    body = m.ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    return _I16.pack(kind) + body.encode(0)
