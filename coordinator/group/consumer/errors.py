"""Refusals with a sentence for the client's log."""

from __future__ import annotations

from coordinator.result import CoordinatorError
from protocol.errors import ErrorCode


class Refused(CoordinatorError):
    """An operation that is refused. `text` goes into the answer where its message has a place for it."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(error)
        self.text = text


def no_group(group_id: str) -> Refused:
    """There is no group of this id."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")


def not_a_consumer_group(group_id: str) -> Refused:
    """The group is of another protocol."""
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def no_member(member_id: str, group_id: str) -> Refused:
    """The group has no such member."""
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")
