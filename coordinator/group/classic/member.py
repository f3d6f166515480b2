"""One member of a classic group: what it told us, what it waits for, and when its session ends.

Sessions are lazy: a heartbeat only moves `session_deadline_ms`. The timer that is set fires at the earlier
time, sees the new deadline and is set again, so heartbeats, by far the most frequent event, set no timers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.group.room import Claim

NO_TIMER = -1


@dataclass(slots=True)
class Waiter:
    """A parked request: its token, and the version that its answer is for."""

    token: int
    version: int


@dataclass(slots=True)
class Member:
    """A member; times in milliseconds.

    `is_new` holds from its first JoinGroup until that is answered: it does not know its id yet and cannot
    send heartbeats, so a limit of its own applies. While a request of a member that is not new is parked,
    its session cannot end.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    is_new: bool = False
    joining: Waiter | None = None
    syncing: Waiter | None = None
    session_deadline_ms: int = 0
    timer_at_ms: int = NO_TIMER
    claim: Claim | None = field(default=None, compare=False, repr=False)

    @property
    def is_static(self) -> bool:
        """Whether the member has a group.instance.id (KIP-345)."""
        return self.instance_id is not None

    @property
    def may_expire(self) -> bool:
        """Whether the end of its session time removes it now."""
        return self.is_new or (self.joining is None and self.syncing is None)

    def metadata(self, protocol: str | None) -> bytes:
        """Its metadata for a protocol name; empty when it does not support that."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def vote(self, candidates: dict[str, int]) -> str | None:
        """The first of its protocols that is a candidate."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        return None
