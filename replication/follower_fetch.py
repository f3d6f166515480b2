"""What a leader learns from one fetch of a follower.

A follower asks from where its log ends, so its request acknowledges all that is before. That counts when the
request is read for the first time, not when it is read again after it waited: then it says nothing new. A
fetch that is refused or told to truncate says nothing either. What follows from it (a higher high watermark,
a larger ISR) is told to others once the whole request is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from replication.fetch import Row
    from replication.follower import Pulse
    from replication.partition import Partition


class FollowerFetch:
    """One request of broker `broker_id`, which says to be registered under `broker_epoch` (-1: says nothing).

    It came at `now_ms` on the monotonic clock. `pulse` is that of the session that it goes on with.
    """

    __slots__ = ("_moved", "broker_epoch", "broker_id", "now_ms", "pulse")

    def __init__(self, broker_id: int, now_ms: int, broker_epoch: int = -1) -> None:
        self.broker_id = broker_id
        self.now_ms = now_ms
        self.broker_epoch = broker_epoch
        self.pulse: Pulse | None = None
        self._moved: list[Partition] = []

    def seen(self, partition: Partition, row: Row, leader_end: int) -> None:
        """The row was read while the leader's log ended at `leader_end`."""
        leadership = partition.leadership
        if leadership is None or row.error != ErrorCode.NONE or row.diverging is not None:
            return
        wanted = row.wanted
        if leadership.fetched(
            self.broker_id,
            wanted.fetch_offset,
            wanted.log_start_offset,
            leader_end,
            self.pulse,
            self.broker_epoch,
        ):
            self._moved.append(partition)

    def settle(self) -> None:
        """The request is read: tell those who wait for what it acknowledged."""
        moved, self._moved = self._moved, []
        for partition in moved:
            partition.committed_more()
