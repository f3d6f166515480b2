"""The order in which a request is refused."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.epoch_fence import check_leader_epoch, storage_error_at


@pytest.mark.parametrize(
    ("requested", "leads", "required", "error"),
    [
        (-1, True, True, ErrorCode.NONE),
        (5, True, True, ErrorCode.NONE),
        (4, True, True, ErrorCode.FENCED_LEADER_EPOCH),
        (6, True, True, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, False, True, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (5, False, True, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (4, False, True, ErrorCode.FENCED_LEADER_EPOCH),
        (6, False, True, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (5, False, False, ErrorCode.NONE),
        (-1, False, False, ErrorCode.NONE),
    ],
)
def test_the_epoch_is_judged_before_leadership(requested, leads, required, error):
    assert check_leader_epoch(requested, 5, leads, required) == error


@pytest.mark.parametrize(("version", "code"), [(0, 6), (5, 6), (6, 56), (18, 56)])
def test_old_fetch_versions_are_told_of_a_failed_disk_as_not_leader(version, code):
    assert storage_error_at(ErrorCode.KAFKA_STORAGE_ERROR, version) == code
    assert storage_error_at(ErrorCode.OFFSET_OUT_OF_RANGE, version) == ErrorCode.OFFSET_OUT_OF_RANGE
