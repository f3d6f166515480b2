"""Requests of one change: contents, order, and what sticks."""

from __future__ import annotations

import asyncio

from protocol import messages as m
from replication.controller.assignment import Assignment
from replication.controller.batches import RequestBatch
from replication.controller.cluster_state import ControllerState, Leadership, TopicPartition
from replication.metadata.image import BrokerImage, EndpointImage

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)


def broker(broker_id: int, rack=None) -> BrokerImage:
    endpoints = {
        "IN": EndpointImage(f"in{broker_id}", 9000 + broker_id),
        "OUT": EndpointImage(f"out{broker_id}", 9100 + broker_id, "SASL_SSL"),
    }
    return BrokerImage(broker_id, 100 + broker_id, endpoints, rack)


def requests(batch: RequestBatch):
    return asyncio.run(batch.requests())


def batch_of() -> tuple[ControllerState, RequestBatch]:
    state = ControllerState(7, 4, {1: broker(1), 2: broker(2, "r"), 3: broker(3)})
    state.add_topic("t", b"t" * 16, {0: Assignment((3, 1, 2), (3,), (2,))})
    state.add_topic("u", b"u" * 16, {0: Assignment((2, 9))})
    state.leaderships[T0] = Leadership(1, 5, (1, 2), 8, 3, recovering=True)
    state.leaderships[U0] = Leadership(2, 0, (2,), 0, 4)
    return state, RequestBatch(state, "IN")


def test_leader_and_isr_tells_all_there_is_to_know():
    _, batch = batch_of()
    batch.leader_and_isr([2], T0, is_new=True)
    first = requests(batch)[0]
    assert (first.broker_id, first.broker_epoch, first.version) == (2, 102, 7)
    request = first.request
    assert (request.controller_id, request.controller_epoch, request.broker_epoch, request.type) == (
        7,
        4,
        102,
        0,
    )
    topic = request.topic_states[0]
    assert (topic.topic_name, topic.topic_id) == ("t", b"t" * 16)
    assert topic.partition_states[0] == m.LeaderAndIsrRequest.LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=3,
        leader=1,
        leader_epoch=5,
        isr=[1, 2],
        partition_epoch=8,
        replicas=[3, 1, 2],
        adding_replicas=[3],
        removing_replicas=[2],
        is_new=True,
        leader_recovery_state=1,
    )
    leader = request.live_leaders
    assert leader == [m.LeaderAndIsrRequest.LeaderAndIsrLiveLeader(broker_id=1, host_name="in1", port=9001)]


def test_requests_leave_by_kind_and_then_by_broker():
    _, batch = batch_of()
    batch.stop_replica(1, T0, delete=False)
    batch.leader_and_isr([3, 2], T0, is_new=False)
    kinds = [(type(r.request).__name__, r.broker_id) for r in requests(batch)]
    assert kinds == [
        ("LeaderAndIsrRequest", 2),
        ("LeaderAndIsrRequest", 3),
        ("UpdateMetadataRequest", 1),
        ("UpdateMetadataRequest", 2),
        ("UpdateMetadataRequest", 3),
        ("StopReplicaRequest", 1),
    ]


def test_new_and_delete_stick_within_a_batch():
    _, batch = batch_of()
    batch.leader_and_isr([2], T0, is_new=True)
    batch.leader_and_isr([2], T0, is_new=False)
    batch.stop_replica(3, T0, delete=True)
    batch.stop_replica(3, T0, delete=False)
    first, *_, last = requests(batch)
    assert [p.is_new for p in first.request.topic_states[0].partition_states] == [True]
    assert [p.delete_partition for p in last.request.topic_states[0].partition_states] == [True]
    assert last.deletions == (T0,)
    assert last.version == 4


def test_update_metadata_names_all_brokers_and_offline_replicas():
    _, batch = batch_of()
    batch.update_metadata([1], [U0])
    (only,) = requests(batch)
    assert only.version == 8
    assert only.request.topic_states[0].partition_states[0] == (
        m.UpdateMetadataRequest.UpdateMetadataPartitionState(
            partition_index=0,
            controller_epoch=4,
            leader=2,
            leader_epoch=0,
            isr=[2],
            zk_version=0,
            replicas=[2, 9],
            offline_replicas=[9],
        )
    )
    live = only.request.live_brokers
    assert [b.id for b in live] == [1, 2, 3]
    assert [b.rack for b in live] == [None, "r", None]
    assert [(e.listener, e.host, e.port, e.security_protocol) for e in live[0].endpoints] == [
        ("IN", "in1", 9001, 0),
        ("OUT", "out1", 9101, 3),
    ]


def test_a_topic_that_goes_is_told_with_leader_minus_two_and_stopped_under_minus_two():
    state, batch = batch_of()
    state.deleting["t"] = None
    batch.update_metadata([1], [T0])
    batch.stop_replica(1, T0, delete=True)
    told, stop = requests(batch)
    partition = told.request.topic_states[0].partition_states[0]
    assert (partition.leader, partition.leader_epoch, partition.zk_version) == (-2, 0, 0)
    assert partition.isr == [1, 2]
    assert stop.request.topic_states[0].partition_states[0].leader_epoch == -2


def test_brokers_that_are_gone_get_nothing():
    _, batch = batch_of()
    batch.leader_and_isr([9], U0, is_new=False)
    batch.stop_replica(9, U0, delete=False)
    assert [r.broker_id for r in requests(batch)] == [1, 2, 3]


def test_what_is_told_is_what_holds_when_it_is_sent():
    state, batch = batch_of()
    batch.leader_and_isr([2], T0, is_new=False)
    state.leaderships[T0] = Leadership(3, 6, (3,), 9, 4)
    leader, metadata, *_ = requests(batch)
    assert leader.request.topic_states[0].partition_states[0].leader == 3
    assert metadata.request.topic_states[0].partition_states[0].leader_epoch == 6


def test_a_partition_without_a_leader_yet_is_not_told():
    state, batch = batch_of()
    del state.leaderships[T0]
    batch.update_metadata([1], [T0])
    assert [r.request.topic_states for r in requests(batch)] == [[]]


def test_every_request_can_be_encoded():
    _, batch = batch_of()
    batch.leader_and_isr([1], T0, is_new=True)
    batch.stop_replica(2, T0, delete=True)
    for request in requests(batch):
        assert len(request.request.encode(request.version)) > 20
