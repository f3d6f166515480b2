"""The tables of legal transitions."""

from __future__ import annotations

from replication.controller.states import (
    PARTITION_PREDECESSORS,
    REPLICA_PREDECESSORS,
    PartitionState,
    ReplicaState,
)


def test_every_state_but_none_is_entered_from_somewhere():
    assert set(PARTITION_PREDECESSORS) == set(PartitionState)
    assert set(REPLICA_PREDECESSORS) == set(ReplicaState)


def test_a_partition_that_is_gone_went_offline_first():
    assert PARTITION_PREDECESSORS[PartitionState.NON_EXISTENT] == (PartitionState.OFFLINE,)
    assert PartitionState.NON_EXISTENT not in PARTITION_PREDECESSORS[PartitionState.ONLINE]


def test_a_replica_is_deleted_step_by_step():
    assert REPLICA_PREDECESSORS[ReplicaState.DELETION_STARTED] == (ReplicaState.OFFLINE,)
    assert REPLICA_PREDECESSORS[ReplicaState.DELETION_SUCCESSFUL] == (ReplicaState.DELETION_STARTED,)
    assert REPLICA_PREDECESSORS[ReplicaState.NON_EXISTENT] == (ReplicaState.DELETION_SUCCESSFUL,)
    assert REPLICA_PREDECESSORS[ReplicaState.DELETION_INELIGIBLE] == (
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_STARTED,
    )
