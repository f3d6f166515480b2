"""Becoming leader or follower of a partition as LeaderAndIsr says, in one synchronous stretch.

The caller has compared the leader epoch; a state with an older partition epoch than the known one is
overtaken and changes nothing. A leader never truncates. Who waits for the partition looks again afterwards
and sees what holds now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from replication.leadership import LeaderContext, Leadership
from replication.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from replication.metadata.image import PartitionImage
    from replication.partition import Partition


def become_leader(partition: Partition, state: PartitionImage, context: LeaderContext) -> bool:
    """Lead from now on; False if the state is overtaken. Raises StorageFailed, and nothing has changed.

    The epoch is in the log's cache from here on, even if no record follows: it is larger than any that a
    follower may ask about.

    What is known of followers stays true only if nobody else led in between: the next epoch with this broker
    as leader. Else they may have followed another, and cut off what they had acknowledged here. Kafka keeps
    what it knows also then, and may take records for committed that only the leader has.
    """
    if state.partition_epoch < partition.partition_epoch:
        return False
    partition.write_pending()
    newer = state.leader_epoch > partition.leader_epoch
    if newer:
        partition.log.assign_epoch(state.leader_epoch)
    new_leader = not partition.is_leader or state.leader_epoch > partition.leader_epoch + 1
    _take(partition, state)
    partition.is_leader = True
    partition.isr = state.isr
    if len(state.replicas) > 1 or len(state.isr) > 1:
        if partition.leadership is None:
            partition.leadership = Leadership(partition, context)
        partition.leadership.begin(state, newer, new_leader)
        partition.leadership.advance()
    else:
        partition.leadership = None
        partition.advance_high_watermark()
    partition.role_changed()
    return True


def become_follower(partition: Partition, state: PartitionImage) -> bool:
    """Follow from now on; whether a fetcher has to begin anew: the epoch is newer, the leader may be the
    same. Raises StorageFailed if what was staged as leader cannot be written; the role is taken then, too.
    """
    if state.partition_epoch < partition.partition_epoch:
        return False
    newer = state.leader_epoch > partition.leader_epoch
    try:
        partition.write_pending()
    finally:
        _take(partition, state)
        partition.is_leader = False
        partition.isr = ()
        partition.leadership = None
        if newer:
            partition.role_changed()
    return newer


def step_down(partition: Partition) -> None:
    """Lead no more, under an epoch whose leader is not known yet: that epoch is not taken.

    The controller has said that this broker does not lead, so that it must not go on acknowledging.
    """
    partition.write_pending()
    partition.is_leader = False
    partition.leader_id = NO_LEADER
    partition.isr = ()
    partition.leadership = None
    partition.role_changed()


def _take(partition: Partition, state: PartitionImage) -> None:
    partition.partition_epoch = state.partition_epoch
    partition.leader_id, partition.leader_epoch = state.leader, state.leader_epoch
    partition.replicas = state.replicas
