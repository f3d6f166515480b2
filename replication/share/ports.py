"""What the leader of share partitions needs from the broker around it: where their state is kept, and what
the groups are set to.

The state of a share partition is kept by the share coordinator, in `__share_group_state`. The leader reads it
when it begins to serve the partition and writes each change of records' states; it never deletes it.
Delivery states are Kafka's numbers: 0 available, 2 acknowledged, 4 archived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from protocol.errors import ErrorCode

UNINITIALIZED_START = -1
"""A start offset that nobody has decided: the group's share.auto.offset.reset does."""


class StateBatch(NamedTuple):
    """Neighbouring records, `last_offset` inclusive, in one state and delivered so many times."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


@dataclass(slots=True)
class ShareState:
    """What is kept of one share partition. `batches` ascend, do not overlap and may leave gaps."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateBatch] = ()


@dataclass(slots=True)
class StateWrite:
    """A change of state. `start_offset` is where the share partition starts now;
    `delivery_complete_count` records between it and the end are in a final state (KIP-1226).
    """

    group_id: str
    topic_id: bytes
    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class SharePersister(Protocol):
    """Keeps the state of share partitions, here or on another broker.

    `done` is called exactly once, on the event loop, perhaps before the call returns. Its error is the
    coordinator's own: 14, 15, 16 for one that is not there, 74 and 124 for a leader or state epoch that is
    out of date, 3, 69, -1. Writes for one partition are kept in the order in which they come.
    """

    def read(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        leader_epoch: int,
        done: Callable[[ErrorCode, ShareState | None], None],
    ) -> None:
        """What is kept. It notes the leader epoch: writes with a lower one are refused from then on."""

    def write(self, change: StateWrite, done: Callable[[ErrorCode], None]) -> None:
        """Keep a change. NONE once it will survive the coordinator."""


class Reset(Enum):
    """Where a share partition starts that was never read (share.auto.offset.reset)."""

    LATEST = "latest"
    EARLIEST = "earliest"
    BY_DURATION = "by_duration"


class Limits(NamedTuple):
    """What bounds deliveries of a group: for how long a record is locked, how often it is delivered, and how
    many records of a partition may be in flight.
    """

    lock_duration_ms: int
    delivery_count_limit: int
    max_record_locks: int


class ShareSettings(Protocol):
    """The settings of groups as they are now; group configurations win over the broker's."""

    def limits(self, group_id: str) -> Limits:
        """share.record.lock.duration.ms, share.delivery.count.limit, share.partition.max.record.locks."""

    def reset(self, group_id: str) -> tuple[Reset, int]:
        """share.auto.offset.reset and, for BY_DURATION, its length in ms."""

    def read_committed(self, group_id: str) -> bool:
        """share.isolation.level."""

    def renew_allowed(self, group_id: str) -> bool:
        """share.renew.acknowledge.enable."""
