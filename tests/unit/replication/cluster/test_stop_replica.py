"""StopReplica: who may stop, what stays and what goes."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.unit.replication.cluster import Parked
from tests.unit.replication.cluster.stage import TOPIC, Stage, run

R = m.StopReplicaRequest


def request(epoch=1, delete=False, controller_epoch=1, broker_epoch=-1):
    state = R.StopReplicaPartitionState(partition_index=0, leader_epoch=epoch, delete_partition=delete)
    topic = R.StopReplicaTopicState(topic_name=TOPIC, partition_states=[state])
    return R(controller_epoch=controller_epoch, broker_epoch=broker_epoch, topic_states=[topic])


def led():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    stage.lead(1)
    stage[1].produce(3)
    return stage


def stop(node, **fields):
    answer = run(node.stop_replica.handle(request(**fields)))
    [partition] = answer.partition_errors
    assert (partition.topic_name, partition.partition_index) == (TOPIC, 0)
    return answer.error_code, partition.error_code


def test_a_replica_that_stops_keeps_its_log():
    stage = led()
    waiting = Parked()
    stage[1].partition().await_commit(waiting, 2)
    assert stop(stage[1]) == (0, 0)
    assert stage[1].replicas.get(TOPIC, 0) is None
    assert waiting.woken == 1
    assert stage[1].logs.get(TOPIC, 0).end_offset == 3
    assert stage[1].replicas.find(TOPIC, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER  # other brokers have it
    stage.lead(1)
    assert stage[1].log.end_offset == 3


def test_a_follower_that_stops_fetches_no_more():
    stage = led()
    stop(stage[2])
    assert stage[2].fetch() == []


def test_with_delete_the_log_goes():
    stage = led()
    assert stop(stage[1], epoch=-2, delete=True) == (0, 0)
    assert stage[1].logs.get(TOPIC, 0) is None


def test_what_lies_here_from_before_a_restart_goes_with_delete():
    stage = led()
    node = stage.bounce(1)
    assert stop(node, epoch=-2, delete=False) == (0, 0)
    assert node.logs.get(TOPIC, 0) is not None
    assert stop(node, epoch=-2, delete=True) == (0, 0)
    assert node.logs.get(TOPIC, 0) is None


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, 0), (2, 0), (-1, 0), (-2, 0)],
)
def test_the_leader_epoch(epoch, error):
    stage = led()
    assert stop(stage[1], epoch=epoch) == (0, error)
    assert (stage[1].replicas.get(TOPIC, 0) is None) == (error == 0)


def test_a_stale_controller_stops_nothing():
    stage = led()
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    assert stop(stage[1], controller_epoch=0) == (stale, stale)
    stale = ErrorCode.STALE_BROKER_EPOCH
    assert stop(stage[1], broker_epoch=0) == (stale, stale)
    assert stage[1].partition().is_leader


def test_a_failed_disk_is_56():
    stage = led()
    stage[1].log.directory.fail(OSError(5, "gone"))
    assert stop(stage[1]) == (0, ErrorCode.KAFKA_STORAGE_ERROR)


def test_older_versions_say_once_whether_to_delete():
    stage = led()
    topic = R.StopReplicaTopicV1(name=TOPIC, partition_indexes=[0])
    run(stage[1].stop_replica.handle(R(controller_epoch=1, topics=[topic], delete_partitions=True)))
    assert stage[1].logs.get(TOPIC, 0) is None
    old = R.StopReplicaPartitionV0(topic_name=TOPIC, partition_index=0)
    run(stage[2].stop_replica.handle(R(controller_epoch=1, ungrouped_partitions=[old])))
    assert stage[2].replicas.get(TOPIC, 0) is None
