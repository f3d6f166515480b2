"""Partitions made and removed as images say, and the reasons why one is not here."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from protocol.errors import ErrorCode
from replication.controller.outcomes import MorePartitions, NewTopic, TopicToDelete
from replication.fetch import Wanted
from replication.metadata.image import PartitionImage, TopicImage
from replication.partition import Partition
from storage.log_config import LogConfig
from tests.unit.replication.cluster import Broker, Parked, on_broker, produce, topic_resource, wanted

UNKNOWN_ID = bytes([9]) * 16


def test_what_is_not_here_and_why():
    async def story(broker):
        created = await broker.create("t", 2)
        replicas = broker.replicas
        assert len(replicas) == 2
        assert [repr(partition) for partition in replicas] == ["t-0", "t-1"]
        assert isinstance(replicas.find("t", 1), Partition)
        assert replicas.find("t", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert replicas.find("t", -1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert replicas.find("u", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert replicas.error_of_id(UNKNOWN_ID, 0) == ErrorCode.UNKNOWN_TOPIC_ID
        assert replicas.error_of_id(created.topic_id, 5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        by_id = Wanted("", created.topic_id, 1, 0, 1)
        assert replicas.wanted_partition(by_id) is replicas.get("t", 1)
        assert replicas.wanted_partition(wanted("t", 1)) is replicas.get("t", 1)
        assert replicas.wanted_partition(Wanted("", UNKNOWN_ID, 0, 0, 1)) == ErrorCode.UNKNOWN_TOPIC_ID
        replicas.get("t", 1).log.topic_id = UNKNOWN_ID
        assert replicas.wanted_partition(by_id) == ErrorCode.INCONSISTENT_TOPIC_ID

    on_broker(story)


def test_partitions_of_other_brokers_are_not_hosted():
    async def story(broker):
        image = broker.holder.current
        states = (
            PartitionImage(0, 2, 0, 0, (2,), (2,)),
            PartitionImage(1, 2, 0, 0, (2, 1), (2, 1)),
        )
        broker.holder.publish(image.with_topics([TopicImage("t", UNKNOWN_ID, states)]))
        assert broker.replicas.find("t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        follower = broker.replicas.find("t", 1)
        assert follower.check(-1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(broker.logs) == 1

    on_broker(story)


def test_deletion_wakes_who_waits_and_sets_the_log_aside():
    async def story(broker):
        await broker.create("t")
        partition = broker.replicas.get("t", 0)
        waiter = Parked()
        partition.waiters[waiter] = None
        await broker.controller.delete_topics([TopicToDelete("t")], timeout_ms=1)
        assert waiter.woken == 1
        assert partition.removed
        assert broker.logs.get("t", 0) is None
        assert [name for name in broker.files.list_dir("/logs") if name.endswith("-delete")]

    on_broker(story)


def test_a_log_that_cannot_be_made_answers_56_and_the_others_serve():
    async def story(broker):
        broker.files.fail_next("make_dirs", 28, "t-0")
        broker.files.fail_next("make_dirs", 28, "t-0")
        await broker.controller.create_topics([NewTopic("t", 2)], timeout_ms=1)
        assert broker.replicas.find("t", 0) == ErrorCode.KAFKA_STORAGE_ERROR
        assert produce(broker.replicas.get("t", 1)) == 0
        await broker.controller.delete_topics([TopicToDelete("t")], timeout_ms=1)
        assert broker.replicas.find("t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    on_broker(story)


def test_a_log_that_found_no_room_is_made_when_there_is_some():
    async def story(broker):
        replicas = broker.replicas
        for _ in range(3):
            broker.files.fail_next("make_dirs", 28, "t-0")
        await broker.controller.create_topics([NewTopic("t", 2)], timeout_ms=1)
        assert replicas.is_offline("t", 0)
        assert replicas.make_missing() == 0
        assert replicas.make_missing() == 1
        assert not replicas.is_offline("t", 0)
        assert produce(replicas.get("t", 0)) == 0
        assert replicas.make_missing() == 0

    on_broker(story)


def test_a_log_that_found_no_room_is_forgotten_with_its_topic():
    async def story(broker):
        for _ in range(2):
            broker.files.fail_next("make_dirs", 28, "t-0")
        await broker.controller.create_topics([NewTopic("t", 1)], timeout_ms=1)
        assert broker.replicas.any_offline
        await broker.controller.delete_topics([TopicToDelete("t")], timeout_ms=1)
        assert broker.replicas.make_missing() == 0
        assert broker.logs.get("t", 0) is None

    on_broker(story)


def test_partitions_on_a_directory_that_failed_are_offline_and_their_readers_hear_so():
    async def story(broker):
        await broker.create("t")
        replicas, partition = broker.replicas, broker.replicas.get("t", 0)
        waiter = Parked()
        partition.waiters[waiter] = None
        assert not replicas.any_offline
        broker.logs.dirs[0].fail(OSError(5, "Input/output error"))
        replicas.directory_failed()
        assert replicas.any_offline
        assert replicas.is_offline("t", 0)
        assert not replicas.is_offline("u", 0)
        assert waiter.woken == 1

    on_broker(story)


def test_a_failed_disk_does_not_stop_the_others_from_following_an_image():
    async def story(broker):
        await broker.create("t", 2)
        image = broker.holder.current
        for partition in broker.replicas:
            produce(partition)
        topic = image.topics["t"]
        states = tuple(replace(state, leader_epoch=1, partition_epoch=1) for state in topic.partitions)
        broker.files.fail_next("write_atomic", 5, "t-0")
        broker.holder.publish(image.with_topics([replace(topic, partitions=states)]))
        assert [partition.leader_epoch for partition in broker.replicas] == [1, 1]

    on_broker(story)


def test_listeners_hear_of_every_change():
    async def story(broker):
        heard = []
        broker.replicas.on_change(lambda: heard.append(dict(broker.holder.current.topics).keys()))
        await broker.create("t")
        await broker.controller.create_partitions([MorePartitions("t", 2)], timeout_ms=1)
        await broker.controller.replace_configs([(topic_resource("t"), [("good", "1")])])
        await broker.controller.delete_topics([TopicToDelete("t")], timeout_ms=1)
        assert [list(names) for names in heard] == [["t"], ["t"], ["t"], []]
        await broker.controller.replace_configs([(topic_resource("t"), [("good", "1")])])
        assert len(heard) == 4

    on_broker(story)


def test_new_defaults_reach_all_logs():
    async def story(broker):
        await broker.create("t", 2)
        broker.replicas._config_of = lambda topic, overrides: LogConfig(max_message_bytes=77)
        broker.replicas.refresh_configs()
        assert [p.log.config.max_message_bytes for p in broker.replicas] == [77, 77]

    on_broker(story)


def test_logs_of_no_topic_are_kept_as_stray():
    async def main():
        first = Broker()
        await first.start()
        await first.create("kept")
        await first.create("gone")
        first.logs.close()
        await first.controller.delete_topics([TopicToDelete("gone")], timeout_ms=1)
        await first.store.close()
        second = Broker(first.files, first.tree)
        await second.start()
        leftover = [log.topic for log in second.logs]
        strays = second.replicas.set_strays_aside()
        assert strays == leftover.count("gone")
        assert [log.topic for log in second.logs] == ["kept"]

    asyncio.run(main())


def test_stray_directories_are_renamed():
    async def main():
        broker = Broker()
        broker.logs.get_or_create("nobody", 0, UNKNOWN_ID)
        await broker.start()
        await broker.create("t")
        assert broker.replicas.set_strays_aside() == 1
        assert broker.replicas.set_strays_aside() == 0
        assert [name for name in broker.files.list_dir("/logs") if "-stray" in name]
        assert broker.logs.get("t", 0) is not None

    asyncio.run(main())


async def turns_during(work):
    """How many turns the loop had for others meanwhile."""
    turns, done = 0, False

    async def others():
        nonlocal turns
        while not done:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(others())
    await work
    done = True
    await task
    return turns


@pytest.mark.parametrize("partitions", [400])
def test_the_loop_gets_its_turn_while_many_logs_are_made_and_set_aside(partitions):
    async def story(broker):
        assert await turns_during(broker.create("t", partitions)) >= partitions / 10
        assert len(broker.replicas) == len(broker.logs) == partitions
        delete = broker.controller.delete_topics([TopicToDelete("t")], timeout_ms=1000)
        assert await turns_during(delete) >= partitions / 10
        assert len(broker.replicas) == len(broker.logs) == 0
        names = broker.files.list_dir("/logs")
        assert len([name for name in names if "-delete" in name]) == partitions

    on_broker(story)


def test_a_partition_serves_no_more_before_its_log_is_set_aside():
    async def story(broker):
        await broker.create("t", 2)
        partition, image = broker.replicas.get("t", 1), broker.holder.current
        broker.holder.publish(image.with_topics((), ["t"]))
        assert partition.removed
        assert not partition.is_leader
        assert broker.replicas.find("t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert broker.logs.get("t", 1) is partition.log
        await broker.replicas.settle()
        assert broker.logs.get("t", 1) is None
        await broker.replicas.settle()

    on_broker(story)


@pytest.mark.parametrize("prepared", [True, False])
def test_a_topic_made_anew_at_once_gets_new_logs_and_the_old_ones_go(prepared):
    async def story(broker):
        await broker.create("t", 3)
        for partition in broker.replicas:
            produce(partition)
        image = broker.holder.current
        gone = image.with_topics((), ["t"])
        anew = gone.with_topics([replace(image.topics["t"], topic_id=UNKNOWN_ID)])
        broker.holder.publish(gone)
        if prepared:
            await broker.replicas.prepare(anew)
        broker.holder.publish(anew)
        await broker.replicas.settle()
        for index in range(3):
            log = broker.replicas.get("t", index).log
            assert log is broker.logs.get("t", index)
            assert (log.topic_id, log.end_offset, log.closed) == (UNKNOWN_ID, 0, False)
        names = broker.files.list_dir("/logs")
        assert len([name for name in names if "-delete" in name]) == 3
        assert not [name for name in names if "-stray" in name]

    on_broker(story)


def test_a_topic_replaced_within_one_image_keeps_its_new_logs():
    async def story(broker):
        await broker.create("t", 2)
        image = broker.holder.current
        anew = image.with_topics([replace(image.topics["t"], topic_id=UNKNOWN_ID)])
        await broker.replicas.prepare(anew)
        broker.holder.publish(anew)
        await broker.replicas.settle()
        for index in range(2):
            log = broker.replicas.get("t", index).log
            assert log is broker.logs.get("t", index)
            assert (log.topic_id, log.closed) == (UNKNOWN_ID, False)

    on_broker(story)
