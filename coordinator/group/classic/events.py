"""What may happen to a classic group: requests, timers, and news from the log.

Requests carry a `token` that the caller chose; each request is answered by exactly one Reply with that
token, at once or after later events. Versions are those of the request's API, because answers differ by
version. Timer events arrive when a timer set by an Outcome has run out; one that is out of date changes
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.group.room import Room
from protocol.errors import ErrorCode

NO_MEMBER_ID = ""
NO_GENERATION = -1


@dataclass(slots=True)
class GroupSettings:
    """The broker's settings for classic groups, in Kafka's names; times in milliseconds.

    `group.max.size`, `group.initial.rebalance.delay.ms`, `group.min.session.timeout.ms`,
    `group.max.session.timeout.ms`. `new_member_join_timeout_ms` has no key in Kafka either. `room` is shared
    by the members of all groups.
    """

    max_size: int = 2**31 - 1
    initial_rebalance_delay_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    new_member_join_timeout_ms: int = 300_000
    room: Room = field(default_factory=Room)


@dataclass(slots=True)
class JoinGroup:
    """JoinGroup 0-9. `protocols` are (name, metadata) in the member's order of preference.

    A rebalance timeout below 0 (version 0 has none) means: the session timeout.
    """

    token: int
    version: int
    member_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    instance_id: str | None = None
    reason: str | None = None
    client_id: str = ""
    client_host: str = ""

    def __post_init__(self) -> None:
        if self.rebalance_timeout_ms < 0:
            self.rebalance_timeout_ms = self.session_timeout_ms


@dataclass(slots=True)
class SyncGroup:
    """SyncGroup 0-5. The leader's request has the assignments as member id -> bytes."""

    token: int
    version: int
    member_id: str
    generation: int
    instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: dict[str, bytes] | None = None


@dataclass(slots=True)
class Heartbeat:
    """Heartbeat 0-4."""

    token: int
    version: int
    member_id: str
    generation: int
    instance_id: str | None = None


@dataclass(slots=True)
class LeavingMember:
    """One entry of a LeaveGroup request; an administrator names only the instance id."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class LeaveGroup:
    """LeaveGroup 0-5; below version 3 there is exactly one member."""

    token: int
    version: int
    members: tuple[LeavingMember, ...]


@dataclass(slots=True)
class SessionExpired:
    """A member's session timer, or the limit of a new member's first join, ran out."""

    member_id: str


@dataclass(slots=True)
class PendingMemberExpired:
    """A member id that was handed out (KIP-394) has not been used within its session timeout."""

    member_id: str


@dataclass(slots=True)
class InitialDelayOver:
    """The wait for more members of an empty group is over (`group.initial.rebalance.delay.ms`)."""


@dataclass(slots=True)
class RebalanceDeadline:
    """The join phase has lasted one rebalance timeout."""


@dataclass(slots=True)
class SyncDeadline:
    """One rebalance timeout has passed since the join phase of `generation` ended."""

    generation: int


@dataclass(slots=True)
class RecordsCommitted:
    """The records of the Outcome with this write id are committed."""

    write_id: int


@dataclass(slots=True)
class RecordsFailed:
    """The records of the Outcome with this write id were not written; `error` is the log's own code."""

    write_id: int
    error: ErrorCode


@dataclass(slots=True)
class Loaded:
    """The partition was read to its end: timers begin, and groups that need it rebalance."""


@dataclass(slots=True)
class Unloaded:
    """Another broker has become the coordinator."""


@dataclass(slots=True)
class Upgraded:
    """The group goes on as a consumer group (KIP-848); what waits has to join again."""


@dataclass(slots=True)
class Deleted:
    """The group's tombstone was written.

    DeleteGroups, or its last offset expired. The group must be Empty.
    """


@dataclass(slots=True)
class Downgraded:
    """The group was a consumer group until now: its members' sessions begin, and a rebalance for `reason`."""

    reason: str | None = None


Request = JoinGroup | SyncGroup | Heartbeat | LeaveGroup
Event = (
    Request
    | SessionExpired
    | PendingMemberExpired
    | InitialDelayOver
    | RebalanceDeadline
    | SyncDeadline
    | RecordsCommitted
    | RecordsFailed
    | Loaded
    | Unloaded
    | Upgraded
    | Deleted
    | Downgraded
)
