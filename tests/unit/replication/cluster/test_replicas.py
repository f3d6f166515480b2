"""Replicas of a broker in a cluster: what comes from images and what does not."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.metadata.configs import ConfigResource, ConfigType
from replication.partition import Partition
from storage.errors import AppendRefused
from tests.unit.replication.cluster import Parked, wanted
from tests.unit.replication.cluster.stage import TOPIC, TOPIC_ID, Stage, run


def by_id(topic_id=TOPIC_ID):
    entry = wanted("", 0)
    entry.topic_id = topic_id
    return entry


def test_an_image_gives_no_roles():
    stage = Stage(2)
    stage.stored[0].update(leader=1, epoch=0, version=0)
    stage.update_all()
    assert len(stage[1].replicas) == 0
    assert stage[1].replicas.find(TOPIC, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_topic_that_the_image_does_not_know_is_served_to_nobody():
    stage = Stage(1)
    node = stage[1]
    node.holder.publish(node.holder.current.with_topics([], [TOPIC]))
    stage.stored[0].update(leader=1, epoch=0, version=0)
    stage.tell(node, is_new=True)
    assert node.replicas.wanted_partition(wanted(TOPIC)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert node.replicas.wanted_partition(by_id()) == ErrorCode.UNKNOWN_TOPIC_ID
    stage.update_all()
    assert isinstance(node.replicas.wanted_partition(wanted(TOPIC)), Partition)
    assert isinstance(node.replicas.wanted_partition(by_id()), Partition)


def test_settings_of_a_topic_reach_its_logs():
    stage = Stage(1)
    node = stage[1]
    stage.lead(1, is_new=True)
    changes = []
    node.replicas.on_change(lambda: changes.append(1))
    stage.config = type(stage.config)(min_insync_replicas=2)
    resource = ConfigResource(ConfigType.TOPIC, TOPIC)
    node.holder.publish(node.holder.current.with_configs({resource: {"min.insync.replicas": "2"}}))
    assert node.log.config.min_insync_replicas == 2
    assert changes == [1]
    stage.update_all()  # nothing new: remembered shapes stay
    assert changes == [1]


def test_who_remembers_hears_of_each_role():
    stage = Stage(2)
    changes = []
    stage[1].replicas.on_change(lambda: changes.append(stage[1].partition().is_leader))
    stage.lead(1, is_new=True)
    stage.lead(2)
    assert changes[-2:] == [True, False]


def test_fenced_partitions_refuse_acks_0_and_1_also_those_that_come_later():
    stage = Stage(1, partitions=2)
    stage.lead(1, is_new=True)
    stage[1].replicas.fence(True)
    stage.lead(1, index=1, is_new=True)
    for index in (0, 1):
        with pytest.raises(AppendRefused):
            stage[1].produce(index=index)
    stage[1].replicas.fence(False)
    assert [stage[1].produce(index=index) for index in (0, 1)] == [0, 0]


def test_a_log_that_cannot_be_made_is_56_until_it_can():
    stage = Stage(1)
    stage[1].files.fail_next("append", 28, "partition.metadata")
    assert stage.lead(1, is_new=True)[1] == ErrorCode.KAFKA_STORAGE_ERROR
    assert stage[1].replicas.find(TOPIC, 0) == ErrorCode.KAFKA_STORAGE_ERROR
    assert stage.lead(1, is_new=True)[1] == ErrorCode.NONE


def test_an_epoch_that_cannot_be_noted_is_not_led():
    stage = Stage(1)
    stage.lead(1, is_new=True)
    stage[1].files.fail_next("append", 28, "leader-epoch")
    assert stage.lead(1)[1] == ErrorCode.KAFKA_STORAGE_ERROR
    assert stage[1].partition().leader_epoch == 0


def test_alive_is_who_the_image_names():
    stage = Stage(2)
    assert stage[1].replicas.is_alive(2)
    stage.stop(2)
    assert not stage[1].replicas.is_alive(2)


def test_a_broker_that_is_gone_holds_no_high_watermark_any_more():
    stage = Stage(3)
    stage.lead(1, isr=[1, 2], is_new=True)
    leadership = stage[1].partition().leadership
    leadership.followers[3].fetched(0, 0, 0, stage.monotonic_ms())  # about to join
    stage[1].produce()
    stage[2].fetch(2)
    assert stage[1].ends == (1, 0)
    waiter = Parked()
    stage[1].partition().await_commit(waiter, 0)
    stage.stop(3)
    assert (stage[1].ends, waiter.woken) == ((1, 1), 1)


def test_only_partitions_that_others_could_lead_are_to_be_handed_over():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    assert [stage[each].replicas.leads_for_others() for each in (1, 2)] == [True, False]
    stage.lead(2)
    assert [stage[each].replicas.leads_for_others() for each in (1, 2)] == [False, True]
    alone = Stage(1)
    alone.lead(1, is_new=True)
    assert not alone[1].replicas.leads_for_others()


def test_a_broker_that_stops_does_not_copy_what_it_has_led():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    stage[1].replicas.departing = True
    stage.lead(2, isr=[2])
    partition = stage[1].partition()
    assert (partition.is_leader, partition.leader_id, stage[1].copying.fetchers) == (False, 2, {})


def test_a_broker_that_stops_copies_on_while_it_is_in_sync():
    stage = Stage(3)
    stage.lead(1, is_new=True)
    stage[3].replicas.departing = True
    stage.lead(2, isr=[2, 3])
    assert len(stage[3].copying.fetchers[2]) == 1


def test_a_stale_leader_and_isr_does_not_stop_the_copying():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    stage.lead(1)
    request = stage.request(stage[2], epoch=5, version=0)
    run(stage[2].leader_and_isr.handle(request))
    assert len(stage[2].copying.fetchers[1]) == 1


def test_a_log_that_found_no_room_gets_no_role_by_itself():
    stage = Stage(1)
    stage[1].files.fail_next("append", 28, "partition.metadata")
    stage.lead(1, is_new=True)
    assert stage[1].replicas.make_missing() == 0
    assert stage[1].replicas.get(TOPIC, 0) is None
    assert stage[1].replicas.find(TOPIC, 0) == ErrorCode.KAFKA_STORAGE_ERROR


def test_nothing_is_copied_to_a_directory_that_failed():
    stage = Stage(2)
    stage.lead(1, is_new=True)
    stage[2].log.directory.fail(OSError(5, "gone"))
    stage[2].replicas.directory_failed()
    assert stage[2].fetch() == []


@pytest.mark.parametrize(("number", "asked"), [(28, [1]), (5, [])])
def test_a_role_that_found_no_room_is_asked_for_again_later_and_one_of_a_failed_disk_is_not(number, asked):
    stage = Stage(2)
    node, again = stage[1], []
    node.replicas.ask_again = lambda: again.append(1)
    stage.lead(1, is_new=True)
    node.files.fail_next("append", number, "leader-epoch-checkpoint")
    assert stage.lead(1, tell=[1]) == {1: ErrorCode.KAFKA_STORAGE_ERROR}
    assert again == []
    node.replicas.make_missing()
    node.replicas.make_missing()
    assert again == asked


def test_a_log_that_found_no_room_is_asked_for_again_later():
    stage = Stage(2)
    node, again = stage[1], []
    node.replicas.ask_again = lambda: again.append(1)
    node.files.fail_next("make_dirs", 28, f"{TOPIC}-0")
    assert node.replicas.host(TOPIC, TOPIC_ID, 0, is_new=True) == ErrorCode.KAFKA_STORAGE_ERROR
    node.replicas.make_missing()
    assert again == [1]
    assert isinstance(node.replicas.host(TOPIC, TOPIC_ID, 0, is_new=True), Partition)
