"""A connection whose request in front waits for news of a partition, and is run again from its own bytes.

The connection itself stands among the partition's waiters and in a bucket of deadlines: no task, no timer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from broker.net.waits import PARKED, Waiting

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.hub import Hub
    from replication.partition import Partition


class LongPoll:
    """The part of `Connection` that parks. `late`: the waiting time of the request in front is over;
    `bucket`: the deadlines among which it is noted.
    """

    __slots__ = ("_parked_on", "bucket", "hub", "late", "waiting")

    hub: Hub
    waiting: Waiting | None
    late: bool
    bucket: dict[Any, None] | None
    _parked_on: Partition | None

    def park(self, partition: Partition, wait_ms: int) -> None:
        """The request in front waits for news of the partition; its time counts from its first parking."""
        self.waiting = PARKED
        self._parked_on = partition
        partition.waiters[self] = None
        if self.bucket is None:
            self.bucket = self.hub.deadlines.add(self, wait_ms)

    def wake(self) -> None:
        """The partition has news."""
        self.unpark()
        cast("Connection", self).resume()

    def expire(self) -> None:
        """The waiting time is over."""
        self.late = True
        self.bucket = None
        self.wake()

    def served(self) -> None:
        """A request that may have been parked is answered."""
        self.late = False
        if self.bucket is not None:
            self.bucket.pop(self, None)
            self.bucket = None

    def unpark(self) -> None:
        """Wait for news of no partition any more."""
        if self._parked_on is not None:
            self._parked_on.waiters.pop(self, None)
            self._parked_on = None
