"""A partition that this broker leads, with followers that the test moves and a clock that it sets."""

from __future__ import annotations

from replication.leadership import IsrVerdict, LeaderContext
from replication.metadata.image import PartitionImage
from replication.partition import Partition
from replication.roles import become_leader
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import TOPIC_ID, open_manager
from tests.unit.replication.cluster import produce

ME = 1
LAG_MS = 30_000


def state(leader=ME, epoch=0, version=0, isr=(1, 2, 3), replicas=(1, 2, 3), **fields) -> PartitionImage:
    return PartitionImage(0, leader, epoch, version, tuple(isr), tuple(replicas), **fields)


class Cluster:
    """What a leader asks of its broker; proposals are kept for the test."""

    def __init__(self):
        self.now_ms = 1_000_000
        self.dead: list[int] = []
        self.proposals = []
        self.context = LeaderContext(
            node_id=ME,
            lag_max_ms=LAG_MS,
            now_ms=lambda: self.now_ms,
            alive=lambda broker_id: broker_id not in self.dead,
            propose=lambda partition, change: self.proposals.append(change),
        )


class Led:
    """One partition, led by this broker. `fetch` is what a follower's request tells."""

    def __init__(self, files=None, min_isr=1, **fields):
        self.cluster = Cluster()
        self.manager = open_manager(files or SimFileSystem(), config=LogConfig(min_insync_replicas=min_isr))
        self.partition = Partition("t", 0, TOPIC_ID, self.manager.get_or_create("t", 0, TOPIC_ID))
        self.lead(**fields)

    def lead(self, **fields):
        return become_leader(self.partition, state(**fields), self.cluster.context)

    @property
    def leadership(self):
        return self.partition.leadership

    @property
    def mark(self):
        return self.partition.log.high_watermark

    def produce(self, count=1, acks=1):
        return produce(self.partition, count, acks=acks)

    def fetch(self, broker_id, offset, start=0, after_ms=0, **fields):
        self.cluster.now_ms += after_ms
        end_offset = self.partition.log.end_offset
        return self.leadership.fetched(broker_id, offset, start, end_offset, **fields)

    def decide(self, error=0, version=None, epoch=None, isr=None):
        """The controller answers the proposal that was made last."""
        change = self.cluster.proposals[-1]
        partition = self.partition
        return self.leadership.decided(
            change,
            IsrVerdict(
                error,
                partition.leader_epoch if epoch is None else epoch,
                partition.partition_epoch + 1 if version is None else version,
                change.isr if isr is None else isr,
            ),
        )
