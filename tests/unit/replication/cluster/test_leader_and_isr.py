"""LeaderAndIsr: fences, the error of each partition, and what has happened when it is answered."""

from __future__ import annotations

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.unit.replication.cluster.stage import TOPIC, TOPIC_ID, Stage, run

OTHER_ID = bytes(range(20, 36))


def test_leader_and_follower_take_their_roles():
    stage = Stage(2)
    assert stage.lead(1, is_new=True) == {1: ErrorCode.NONE, 2: ErrorCode.NONE}
    leader, follower = stage[1].partition(), stage[2].partition()
    assert (leader.is_leader, leader.leader_epoch, leader.isr) == (True, 0, (1, 2))
    assert (follower.is_leader, follower.leader_id, follower.isr) == (False, 1, ())
    assert len(stage[2].copying.fetchers[1]) == 1
    stage.lead(2)
    assert len(stage[2].copying.fetchers[1]) == 0
    assert len(stage[1].copying.fetchers[2]) == 1


def test_an_equal_or_older_epoch_is_answered_with_11():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    stage.lead(1)
    assert stage.tell(stage[1]) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert stage.tell(stage[1], epoch=0, leader=2) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert stage[1].partition().leader_epoch == 1


def test_a_stale_controller_and_a_stale_registration_are_refused_as_a_whole():
    stage = Stage(1)
    stage.lead(1, is_new=True)
    request = stage.request(stage[1], epoch=5)
    request.controller_epoch = 0
    answer = run(stage[1].leader_and_isr.handle(request))
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert answer.topics[0].partition_errors[0].error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    request = stage.request(stage[1], epoch=5)
    request.broker_epoch = 0
    assert run(stage[1].leader_and_isr.handle(request)).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert stage[1].partition().leader_epoch == 0


def test_a_partition_of_other_brokers_is_unknown():
    stage = Stage(3)
    assert stage.lead(1, isr=[1, 2], replicas=[1, 2], is_new=True)[3] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stage[3].replicas.get(TOPIC, 0) is None
    stage.lead(1, isr=[1], replicas=[1])
    assert stage.tell(stage[2], epoch=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_another_topic_of_that_name_never_mixes_with_the_log_that_is_here():
    stage = Stage(1)
    stage.lead(1, is_new=True)
    stage[1].produce()
    request = stage.request(stage[1], topic_id=OTHER_ID, epoch=7)
    [topic] = run(stage[1].leader_and_isr.handle(request)).topics
    assert topic.topic_id == OTHER_ID
    assert topic.partition_errors[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    assert (stage[1].log.end_offset, stage[1].log.topic_id, stage[1].partition().leader_epoch) == (
        1,
        TOPIC_ID,
        0,
    )
    node = stage.bounce(1)
    assert run(node.leader_and_isr.handle(request)).topics[0].partition_errors[0].error_code == (
        ErrorCode.STALE_BROKER_EPOCH
    )
    request.broker_epoch = node.epoch
    assert run(node.leader_and_isr.handle(request)).topics[0].partition_errors[0].error_code == (
        ErrorCode.INCONSISTENT_TOPIC_ID
    )


def test_a_follower_with_the_log_of_an_earlier_topic_of_that_name_copies_nothing_into_it():
    stage = Stage(2)
    stage.lead(1, isr=[1], is_new=True)
    stage.lead(2, isr=[2])
    stage[2].produce(3)
    request = stage.request(stage[1], topic_id=OTHER_ID, epoch=7)
    [topic] = run(stage[1].leader_and_isr.handle(request)).topics
    assert topic.partition_errors[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID
    node = stage.bounce(1)
    request.broker_epoch = node.epoch
    run(node.leader_and_isr.handle(request))
    assert node.fetch() == []
    assert node.logs.get(TOPIC, 0).end_offset == 0


def test_a_disk_that_failed_is_56():
    stage = Stage(1)
    stage.lead(1, is_new=True)
    stage[1].log.directory.fail(OSError(5, "gone"))
    assert stage.lead(1)[1] == ErrorCode.KAFKA_STORAGE_ERROR
    other = Stage(1)
    other[1].logs.dirs[0].fail(OSError(5, "gone"))
    assert other.lead(1, is_new=True)[1] == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_leader_that_is_not_known_is_not_followed_and_the_same_epoch_comes_again():
    stage = Stage(2)
    node = stage[1]
    stage.stop(2)
    stage.stored[0].update(leader=2, epoch=4, version=4)
    assert stage.tell(node, is_new=True) == ErrorCode.NONE
    partition = node.partition()
    assert (partition.leader_epoch, node.copying.fetchers) == (-1, {})
    assert node.logs.get(TOPIC, 0) is not None  # so that its high watermark stays in the checkpoint
    stage.start(2, type("Files", (), {"files": None, "epoch": 1}))
    assert stage.tell(node) == ErrorCode.NONE
    assert (partition.leader_epoch, partition.leader_id) == (4, 2)


def test_who_leads_steps_down_for_a_leader_that_is_not_known():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    stage.stop(2)
    stage.stored[0].update(leader=2, epoch=4, version=4)
    stage.tell(stage[1])
    partition = stage[1].partition()
    assert (partition.is_leader, partition.leader_epoch) == (False, 0)
    assert partition.check(-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_clients_are_told_of_the_new_leader_before_update_metadata_comes():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    node, known = stage[1], stage[1].holder.current.topics[TOPIC].partitions[0]
    stage.stored[0].update(leader=2, epoch=4, version=4, isr=[2])
    stage.tell(node)
    told = node.holder.current.topics[TOPIC].partitions[0]
    assert (told.leader, told.leader_epoch, told.isr, told.replicas) == (2, 4, (2,), known.replicas)


def test_clients_are_not_told_of_leaders_that_are_old_or_gone_or_of_another_topic():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    stage.lead(1)
    node, image = stage[1], stage[1].holder.current
    run(node.leader_and_isr.handle(stage.request(node, epoch=0, leader=2)))
    run(node.leader_and_isr.handle(stage.request(node, epoch=5, leader=2, topic_id=OTHER_ID)))
    run(node.leader_and_isr.handle(stage.request(node, epoch=6, leader=9)))
    assert node.holder.current is image


def test_who_listens_hears_of_each_request_that_is_applied_and_for_which_registration():
    stage = Stage(2)
    served, heard = stage[1].leader_and_isr, []
    served.on_roles.append(lambda: heard.append((served.told_epoch, stage[1].partition().is_leader)))
    stage.lead(1, is_new=True)
    stage.tell(stage[1])
    stage.lead(2)
    assert heard == [(1, True), (1, True), (1, False)]
    stage[1].epoch = 7
    stage[1].fence.controller_epoch += 1
    stage.tell(stage[1])
    assert len(heard) == 3


def test_answers_of_old_versions_name_topics():
    stage = Stage(1)
    stage.stored[0].update(leader=1, epoch=0, version=0)
    answer = run(stage[1].leader_and_isr.handle(stage.request(stage[1], is_new=True), 4))
    assert answer.topics == []
    [error] = answer.partition_errors
    assert (error.topic_name, error.partition_index, error.error_code) == (TOPIC, 0, ErrorCode.NONE)


def test_a_request_without_topics_ids_works_on_a_log_that_has_one():
    stage = Stage(1)
    stage.lead(1, is_new=True)
    node = stage.bounce(1)
    stage.stored[0]["epoch"] += 1
    state = stage.request(node).topic_states[0].partition_states[0]
    state.topic_name = TOPIC
    request = m.LeaderAndIsrRequest(controller_epoch=1, broker_epoch=-1, ungrouped_partition_states=[state])
    assert run(node.leader_and_isr.handle(request, 1)).partition_errors[0].error_code == ErrorCode.NONE
    assert node.partition().topic_id == TOPIC_ID


def test_many_partitions_in_one_request():
    stage = Stage(2, partitions=40)
    for index in range(40):
        stage.lead(1 + index % 2, index=index, is_new=True)
    led = [partition.index for partition in stage[1].replicas if partition.is_leader]
    assert led == list(range(0, 40, 2))
