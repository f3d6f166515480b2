"""A commit that differs from an earlier good one in nothing but its offsets.

The batch that it appends differs from the earlier one in nothing but these, its times and its checksum. So
the pieces between them are kept, and no record is made, encoded and decoded: a commit costs 33 us with its
three system calls instead of 51. What it appends, and what it leaves in the shard's state, are byte by byte
and value by value those of `OffsetRequests.commit_offsets`.

Only for what consumers do: no transaction, no retention or commit time of the request's own, and an internal
topic that is not compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from coordinator.group.committer import check_committer
from coordinator.group.modern.ports import Committer
from coordinator.group.offsets import NO_RETENTION, NOW, Commit, TopicPartition
from coordinator.group.records import NO_EXPIRY, Offset, OffsetKey, offset_record
from coordinator.group.shard import GroupShard
from protocol.records.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
)
from protocol.records.crc import crc32c
from protocol.records.keyed import keyed_batch
from protocol.records.rules import Checked
from protocol.records.varints import read_varint

_TIMES_AT = 27  # of the batch's first and greatest time
_TIMES_BYTES = 16
_I64_BYTES = 8
_OFFSET_AT = 2  # in a record's value; the commit's time is the last thing in it
_CRC = Struct(">I")


class RepeatedCommit:
    """Implements `coordinator.runtime.Prepared`. Set `offsets` for each use; it is used up at once."""

    __slots__ = (
        "_cells", "_commits", "_committer", "_count", "_fields", "_group_id", "_head", "_now_ms", "_pack",
        "_size", "_version", "offsets", "partition",
    )  # fmt: skip

    def __init__(
        self, partition: int, group_id: str, committer: Committer, version: int, commits: Sequence[Commit]
    ) -> None:
        """`partition` is where the group lives."""
        assert all(is_plain(each, NO_RETENTION) for each in commits)
        self.partition = partition
        self._group_id, self._committer, self._version = group_id, committer, version
        self._commits = list(commits)
        self._cells: list[tuple[TopicPartition, int, str]] = [
            ((each.topic, each.partition), each.leader_epoch, each.metadata or "") for each in commits
        ]
        self.offsets: Sequence[int] = ()
        self._now_ms = 0
        self._count = len(commits)
        self._take_apart()

    def _take_apart(self) -> None:
        """Make a batch of these commits and keep what stands between its times and offsets."""
        records = [
            offset_record(OffsetKey(self._group_id, *cell), Offset(0, epoch, metadata, 0, NO_EXPIRY))
            for cell, epoch, metadata in self._cells
        ]
        batch = bytes(keyed_batch(records, 0).buf)
        self._head, self._size = batch[:CRC_AT], len(batch)
        fields: list[bytes | int] = [batch[ATTRIBUTES_AT:_TIMES_AT], 0, 0]
        at, record_at = _TIMES_AT + _TIMES_BYTES, HEADER_SIZE
        for record in records:
            length, start = read_varint(batch, record_at, len(batch))
            record_at = start + length
            time_at = record_at - 1 - _I64_BYTES  # what follows is the number of headers
            offset_at = record_at - 1 - len(record.value or b"") + _OFFSET_AT
            fields += [batch[at:offset_at], 0, batch[offset_at + _I64_BYTES : time_at], 0]
            at = time_at + _I64_BYTES
        fields.append(batch[at:])
        self._fields = fields
        shape = "".join(f"{len(each)}s" if isinstance(each, bytes) else "q" for each in fields)
        self._pack = Struct(">" + shape).pack

    def batch(self, shard: GroupShard, now_ms: int) -> Checked:
        """Whether the group takes it, as CoordinatorError, and what is to be appended."""
        group_id, committer = self._group_id, self._committer
        group = check_committer(shard, group_id, committer, self._version, self._commits)
        fields, at = self._fields, 4
        fields[1] = fields[2] = self._now_ms = now_ms
        for offset in self.offsets:
            fields[at], fields[at + 2] = offset, now_ms
            at += 4
        body = self._pack(*fields)
        if group is not None:
            shard.commit_seen(group, committer.member_id, now_ms)
        batch = bytearray(self._head + _CRC.pack(crc32c(body)) + body)
        count = self._count
        return Checked(
            batch, 0, self._size, count, count - 1, 0, now_ms,
            NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP,
        )  # fmt: skip

    def apply(self, shard: GroupShard, base_offset: int) -> None:
        """What the batch says, appended at `base_offset`, becomes state."""
        group_id, now_ms, put = self._group_id, self._now_ms, shard.offsets.put
        record_offset = base_offset
        for (cell, epoch, metadata), offset in zip(self._cells, self.offsets, strict=True):
            put(group_id, cell, (offset, epoch, metadata, now_ms, NO_EXPIRY, record_offset))
            record_offset += 1


def is_plain(commit: Commit, retention_ms: int) -> bool:
    """Whether a commit has no time and no retention of its own."""
    return commit.commit_ms == NOW and retention_ms < 0
