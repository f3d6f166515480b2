"""What a leader knows of one follower: how far it has come, and when it was last caught up. Pure.

A follower tells by each fetch where its log ends and begins. Caught up at a moment means that it had all that
the leader had at that moment; so a follower that reads all the time and is always one batch behind counts as
caught up as of its fetch before.

A fetch that goes on with a session names only what changed. Of the partitions it does not name, those that
had nothing to tell stand at the leader's end, and this fetch asks for them too. `idle` is the session's pulse
for such a partition: its last beat is the last time at which the follower was seen here, without a walk over
all partitions of the session.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = -1
NEVER_MS: Final = -(1 << 40)
"""Before every time-out there may be. The monotonic clock begins with the machine: 0 may be just now."""

REFUSED_MS: Final = 100
"""So long one that the controller has refused is not proposed again.

Kafka proposes it with each fetch, up to a hundred times a second; and where the controller is the broker that
stops, the last of these proposals gets no answer, and nothing is committed until there is another controller.
"""


class Pulse:
    """When a session was last used, in ms on the monotonic clock."""

    __slots__ = ("last_ms", "previous_ms")

    def __init__(self) -> None:
        self.last_ms = self.previous_ms = NEVER_MS

    def beat(self, now_ms: int) -> None:
        """A fetch of the session has begun."""
        self.previous_ms, self.last_ms = self.last_ms, now_ms


class Follower:
    """The state of one remote replica. Offsets are -1 while they are not known; times are monotonic ms.

    `broker_epoch` is the registration under which it fetched last, -1 if it did not say. `refused`: the
    controller has not let it join, and it has not fetched since then and REFUSED_MS more; it may be gone for
    good.
    """

    __slots__ = (
        "_caught_up_ms",
        "_fetched_ms",
        "_idle",
        "_leader_end",
        "_refused_ms",
        "broker_epoch",
        "broker_id",
        "end_offset",
        "log_start_offset",
        "refused",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = UNKNOWN
        self.end_offset = self.log_start_offset = UNKNOWN
        self._caught_up_ms = NEVER_MS
        self._fetched_ms = NEVER_MS
        self._leader_end = UNKNOWN  # of the leader's log, at the last fetch
        self._idle: Pulse | None = None
        self._refused_ms = NEVER_MS
        self.refused = False

    def __repr__(self) -> str:
        return f"broker {self.broker_id} at {self.end_offset}"

    @property
    def caught_up_ms(self) -> int:
        """The last moment at which the follower had all that the leader had."""
        if self._idle is not None:
            return max(self._caught_up_ms, self._idle.last_ms)
        return self._caught_up_ms

    def reset(self, now_ms: int, leader_end: int, new_leader: bool, in_sync: bool) -> None:
        """Leadership of a newer epoch begins; `new_leader` if this broker did not lead before.

        A member of the ISR gets the benefit of the doubt: it counts as caught up now.
        """
        self._idle = None
        self.refused = False
        self._caught_up_ms = now_ms if in_sync else NEVER_MS
        if new_leader:
            self.end_offset = self.log_start_offset = self._leader_end = UNKNOWN
            self._fetched_ms = NEVER_MS
        else:
            self._leader_end = leader_end
            self._fetched_ms = now_ms if in_sync else NEVER_MS

    def fetched(
        self, offset: int, log_start_offset: int, leader_end: int, now_ms: int, pulse: Pulse | None = None
    ) -> None:
        """A fetch from `offset` was read while the leader's log ended at `leader_end`.

        `pulse`: it belongs to a session whose later fetches go on from here until there is news.
        """
        if self._idle is not None:
            before = self._idle.previous_ms if self._idle is pulse else self._idle.last_ms
            self._caught_up_ms = max(self._caught_up_ms, before)
            self._fetched_ms = max(self._fetched_ms, before)
            self._idle = None
        if offset >= leader_end:
            self._caught_up_ms = max(self._caught_up_ms, now_ms)
            self._idle = pulse
        elif offset >= self._leader_end >= 0:
            self._caught_up_ms = max(self._caught_up_ms, self._fetched_ms)
        self.end_offset, self.log_start_offset = offset, log_start_offset
        self._leader_end, self._fetched_ms = leader_end, now_ms
        self.refused = self.refused and now_ms - self._refused_ms < REFUSED_MS

    def refuse(self, now_ms: int) -> None:
        """The controller does not let it join now."""
        self.refused, self._refused_ms = True, now_ms

    def left(self) -> None:
        """The session does not ask for this partition any more."""
        self._caught_up_ms = self.caught_up_ms
        self._idle = None

    def is_caught_up(self, leader_end: int, now_ms: int, lag_max_ms: int) -> bool:
        """At the leader's end, or there no longer ago than `lag_max_ms`. An idle partition stays so."""
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_max_ms
