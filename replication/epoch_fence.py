"""Whether a request may speak to a partition: the order in which Kafka's Partition refuses. Pure.

A client sends the leader epoch it learnt from Metadata (Fetch v9+, ListOffsets v4+, OffsetForLeaderEpoch
v2+); -1 means it knows none. The epoch is judged before leadership: a client that is ahead of us (75)
should wait for us, one that is behind (74) should refresh, and only with equal epochs "not the leader" (6)
says something.
"""

from __future__ import annotations

from protocol.errors import ErrorCode

NO_EPOCH = -1


def check_leader_epoch(
    requested_epoch: int, leader_epoch: int, is_leader: bool, leader_required: bool = True
) -> ErrorCode:
    """NONE, 74 (the client is behind), 75 (the client is ahead) or 6."""
    if requested_epoch != NO_EPOCH:
        if requested_epoch < leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if requested_epoch > leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
    if leader_required and not is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def storage_error_at(error: ErrorCode, fetch_version: int) -> ErrorCode:
    """KAFKA_STORAGE_ERROR is told to Fetch v0-5 as 6, which such clients know."""
    if error == ErrorCode.KAFKA_STORAGE_ERROR and fetch_version <= 5:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return error
