"""What a broker of a cluster does with fetches beyond reading.

Requests of replicas tell how far they have come (`FollowerFetch`). Replicas that are still catching up on a
throttled partition wait while the leader's quota is used up. Consumers are sent to the nearest replica, where
replica.selector.class says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.preferred_replica import Brokers, rack_aware
from replication.cluster.throttle import ReplicationQuota
from replication.fetch import FetchParams, Lookup, Row
from replication.follower_fetch import FollowerFetch
from replication.partition import Partition

EPOCHS_FROM = 15
RACKS_FROM = 11


class ReplicaReads:
    """See the module. `now_ms` is monotonic; `brokers` are the live ones."""

    def __init__(
        self,
        lookup: Lookup,
        brokers: Brokers,
        now_ms: Callable[[], int],
        quota: ReplicationQuota,
        *,
        to_nearest: bool,
    ) -> None:
        self._lookup = lookup
        self._brokers = brokers
        self.now_ms = now_ms
        self._quota = quota
        self._to_nearest = to_nearest

    @property
    def throttles(self) -> bool:
        """Whether some replicas may have to wait for the quota."""
        return self._quota.active

    def follower(self, version: int, request: m.FetchRequest, params: FetchParams) -> FollowerFetch | None:
        """Who takes note of what the request acknowledges; None for a consumer's."""
        if params.replica_id < 0:
            return None
        epoch = request.replica_state.replica_epoch if version >= EPOCHS_FROM else -1
        return FollowerFetch(params.replica_id, self.now_ms(), epoch)

    def params(self, request: m.FetchRequest, params: FetchParams, listener: str) -> FetchParams:
        """The parameters with what holds for this kind of reader."""
        if params.replica_id >= 0:
            return replace(params, throttle=self._must_wait) if self._quota.active else params
        if self._to_nearest and params.version >= RACKS_FROM:
            return replace(params, redirect=rack_aware(request.rack_id, listener, self._brokers))
        return params

    def sent(self, params: FetchParams, rows: Iterable[Row]) -> None:
        """Records of these rows leave for a replica: they count towards the quota."""
        if params.replica_id < 0 or not self._quota.active:
            return
        now_ms = self.now_ms()
        for row in rows:
            if row.length and row.error == ErrorCode.NONE:
                partition = self._lookup(row.wanted)
                if isinstance(partition, Partition):
                    self._quota.record(partition, row.length, now_ms)

    def _must_wait(self, partition: Partition, replica_id: int) -> bool:
        return self._quota.holds(partition, replica_id in partition.isr, self.now_ms())
