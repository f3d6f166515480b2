"""A partition of a `NetBroker` that has followers: the test moves them, and its leadership.

topic = Replicated(net, "orders")
topic.follow(5)         # all followers have what is before offset 5
"""

from __future__ import annotations

from replication.leadership import LeaderContext
from replication.metadata.image import PartitionImage
from replication.partition import Partition
from replication.roles import become_follower, become_leader
from tests.support.net_broker import NetBroker

ME, FOLLOWERS = 1, (2, 3)


class Replicated:
    """See the module. `partition` is partition `index` of the topic."""

    def __init__(self, net: NetBroker, topic: str, index: int = 0, isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.net = net
        found = net.ctx.replicas.get(topic, index)
        assert found is not None
        self.partition: Partition = found
        self._context = LeaderContext(
            node_id=ME,
            lag_max_ms=30_000,
            now_ms=lambda: 1_000,
            alive=lambda _: True,
            propose=lambda *_: None,
        )
        self.lead(isr)

    def _state(self, leader: int, isr: tuple[int, ...]) -> PartitionImage:
        epoch = self.partition.leader_epoch + 1
        version = self.partition.partition_epoch + 1
        return PartitionImage(self.partition.index, leader, epoch, version, isr, (ME, *FOLLOWERS))

    def lead(self, isr: tuple[int, ...] = (1, 2, 3)) -> None:
        """Lead under a new epoch."""
        become_leader(self.partition, self._state(ME, isr), self._context)
        self.net.hub.forget_shapes()

    def step_back(self) -> None:
        """Broker 2 leads."""
        become_follower(self.partition, self._state(2, (2, 3)))
        self.net.hub.forget_shapes()

    def follow(self, offset: int, *followers: int) -> None:
        """These followers, or all, have fetched up to there."""
        leadership = self.partition.leadership
        assert leadership is not None
        moved = [
            leadership.fetched(each, offset, 0, self.partition.log.end_offset)
            for each in followers or FOLLOWERS
        ]
        if any(moved):
            self.partition.committed_more()
