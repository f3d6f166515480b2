"""Questions to the controller's state."""

from __future__ import annotations

from replication.controller.assignment import NOWHERE, Assignment
from replication.controller.cluster_state import (
    ControllerState,
    Leadership,
    Replica,
    TopicPartition,
)
from replication.controller.states import ReplicaState
from replication.metadata.image import BrokerImage

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def state() -> ControllerState:
    made = ControllerState(1, 3, {broker: BrokerImage(broker, 10, {}) for broker in (3, 1, 2)})
    made.add_topic("t", b"t" * 16, {0: Assignment((1, 2)), 1: Assignment((2, 3))})
    made.add_topic("u", b"u" * 16, {0: Assignment((4, 1))})
    made.leaderships[T0] = Leadership(1, 2, (1, 2), 5, 3)
    made.leaderships[U0] = Leadership(4, 0, (4, 1), 0, 3)
    return made


def test_a_broker_that_shuts_down_is_reachable_and_not_live():
    known = state()
    known.shutting_down[2] = None
    assert known.live == [1, 3]
    assert known.reachable == [1, 2, 3]
    assert not known.is_online(2, T0)
    assert known.is_online(2, T0, shutting_down=True)


def test_a_replica_on_a_failed_directory_is_offline_for_its_partition_alone():
    known = state()
    known.offline_dirs[2] = {T0: None}
    assert not known.is_online(2, T0)
    assert known.is_online(2, T1)


def test_partitions_and_replicas_are_found_by_broker_and_topic():
    known = state()
    assert list(known.all_partitions()) == [T0, T1, U0]
    assert known.partitions_on(1) == [T0, U0]
    assert known.replicas_on(2) == [Replica(T0, 2), Replica(T1, 2)]
    assert known.replicas_of_topic("u") == [Replica(U0, 4), Replica(U0, 1)]
    assert known.led_by(1) == [T0]
    assert known.with_offline_leader() == [U0]
    assert known.assignment(TopicPartition("t", 9)) == NOWHERE


def test_topics_that_go_have_no_leader_to_look_for_and_are_stopped_under_any_epoch():
    known = state()
    known.deleting["u"] = None
    assert known.with_offline_leader() == []
    assert known.leader_epoch_to_stop(U0) == -2
    assert known.leader_epoch_to_stop(T0) == 2
    assert known.leader_epoch_to_stop(T1) == -1


def test_a_topic_whose_reassignment_is_under_way_is_served_though_it_is_to_be_deleted():
    known = state()
    known.deleting["u"] = None
    known.reassigning[U0] = None
    assert not known.is_going("u")
    del known.reassigning[U0]
    assert known.is_going("u")


def test_a_removed_topic_leaves_nothing_behind():
    known = state()
    known.replica_states[Replica(T0, 1)] = ReplicaState.ONLINE
    known.reassigning[T0] = None
    known.deleting["t"] = known.deletion_started["t"] = known.deletion_ineligible["t"] = None
    known.offline_dirs[2] = {T0: None, U0: None}
    known.remove_topic("t")
    assert list(known.all_partitions()) == [U0]
    assert list(known.leaderships) == [U0]
    assert known.replica_states == known.reassigning == known.deleting == known.deletion_started == {}
    assert known.topic_names == {b"u" * 16: "u"}
    assert known.offline_dirs == {2: {U0: None}}


def test_the_last_member_in_sync_stays_when_it_goes():
    known = Leadership(1, 5, (1, 2), 7, 3)
    assert known.without(1) == Leadership(-1, 6, (2,), 7, 3)
    assert known.without(2) == Leadership(1, 6, (1,), 7, 3)
    assert Leadership(1, 5, (1,), 7, 3).without(1) == Leadership(-1, 6, (1,), 7, 3)
