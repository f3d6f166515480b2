"""What an event asks its caller to do: append records, answer requests, set timers.

Order for the caller: append the records, set and cancel the timers in their order, send the replies. Replies
never wait for the records beside them; what must wait is answered by the Outcome of RecordsCommitted or
RecordsFailed, one of which has to follow for each write id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.group.classic.events import Event
from protocol import messages as m

Response = m.JoinGroupResponse | m.SyncGroupResponse | m.HeartbeatResponse | m.LeaveGroupResponse
NO_WRITE = -1


class TimerKey(NamedTuple):
    """Names one timer of a group: at most one is set under a key, and setting it again replaces it.

    `kind` is "join" (initial delay and join phase), "sync" (pending syncs) or "session" (with a member id).
    """

    kind: str
    member_id: str = ""


JOIN_TIMER = TimerKey("join")
SYNC_TIMER = TimerKey("sync")


def session_timer(member_id: str) -> TimerKey:
    """The key of a member's session timer; pending ids use it too."""
    return TimerKey("session", member_id)


@dataclass(slots=True)
class SetTimer:
    """Hand `event` back in `delay_ms`."""

    key: TimerKey
    delay_ms: int
    event: Event


@dataclass(slots=True)
class CancelTimer:
    """Forget a timer; nothing happens when it is not set."""

    key: TimerKey


@dataclass(slots=True)
class Reply:
    """The one answer to the request with this token."""

    token: int
    response: Response


@dataclass(slots=True)
class GroupRecord:
    """One record of __consumer_offsets (key type 2); no value is a tombstone."""

    key: m.GroupMetadataKey
    value: m.GroupMetadataValue | None


@dataclass(slots=True)
class Outcome:
    """Everything that one event leads to. `notes` say why: lines for the log, without the group's name."""

    records: list[GroupRecord] = field(default_factory=list)
    write_id: int = NO_WRITE
    timers: list[SetTimer | CancelTimer] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def set_timer(self, key: TimerKey, delay_ms: int, event: Event) -> None:
        self.timers.append(SetTimer(key, max(delay_ms, 0), event))

    def cancel_timer(self, key: TimerKey) -> None:
        self.timers.append(CancelTimer(key))

    def reply(self, token: int, response: Response) -> None:
        self.replies.append(Reply(token, response))

    def note(self, text: str) -> None:
        """A line for the log; what clients put into their ids and reasons cannot begin another one."""
        self.notes.append(text if text.isprintable() else text.encode("unicode_escape").decode())
