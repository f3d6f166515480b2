"""The controller on a memory store, with replicas on simulated files."""

from __future__ import annotations

import asyncio

import pytest

from protocol.errors import ErrorCode
from replication.controller.adoption import LogOnDisk
from replication.controller.outcomes import MorePartitions, NewTopic, TopicToDelete
from replication.metadata.configs import ConfigChange
from replication.metadata.load import load_image
from replication.metadata.store import NoNode, Put
from tests.unit.replication.cluster import NODE, Broker, on_broker, produce, topic_resource


async def stored(broker):
    image = broker.holder.current
    return load_image(await broker.store.subtree("/"), NODE, image.controller_epoch)


async def assert_store_and_image_agree(broker):
    loaded, image = await stored(broker), broker.holder.current
    assert dict(loaded.topics) == dict(image.topics)
    assert dict(loaded.topics_by_id) == dict(image.topics_by_id)
    assert dict(loaded.configs) == dict(image.configs)
    assert dict(loaded.brokers) == dict(image.brokers)


def test_the_start_registers_the_broker_and_takes_over():
    async def story(broker):
        image = broker.holder.current
        assert (image.controller_id, image.controller_epoch) == (NODE, 1)
        assert image.brokers[NODE].rack == "r"
        assert image.brokers[NODE].endpoints["PLAINTEXT"].port == 9092
        assert image.brokers[NODE].epoch > 0
        assert (await broker.store.get("/controller_epoch")).value == b"1"
        await assert_store_and_image_agree(broker)

    async def main():
        broker = Broker()
        await broker.start(rack="r")
        await story(broker)

    asyncio.run(main())


def test_created_topics_serve_when_the_answer_comes():
    async def story(broker):
        outcomes = await broker.controller.create_topics(
            [NewTopic("t", 3, 1), NewTopic("bad/name"), NewTopic("u")], timeout_ms=100
        )
        assert [(o.name, o.error) for o in outcomes] == [
            ("t", ErrorCode.NONE),
            ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
            ("u", ErrorCode.NONE),
        ]
        for index in range(3):
            partition = broker.replicas.get("t", index)
            assert partition is broker.replicas.get_by_id(outcomes[0].topic_id, index)
            assert partition.is_leader
            assert produce(partition) == 0
        await assert_store_and_image_agree(broker)

    on_broker(story)


def test_validate_only_changes_nothing():
    async def story(broker):
        before = await broker.store.subtree("/")
        outcomes = await broker.controller.create_topics(
            [NewTopic("t", 3)], timeout_ms=100, validate_only=True
        )
        assert (outcomes[0].error, outcomes[0].num_partitions) == (ErrorCode.NONE, 3)
        await broker.create("old", 1)
        before = await broker.store.subtree("/")
        await broker.controller.create_partitions(
            [MorePartitions("old", 4)], timeout_ms=100, validate_only=True
        )
        await broker.controller.replace_configs(
            [(topic_resource("old"), [("good", "1")])], validate_only=True
        )
        assert await broker.store.subtree("/") == before
        assert list(broker.holder.current.topics) == ["old"]

    on_broker(story)


def test_without_any_time_nothing_is_done_and_the_answer_is_7():
    async def story(broker):
        await broker.create("t")
        before = broker.holder.current
        outcomes = [
            *await broker.controller.create_topics([NewTopic("u")], timeout_ms=0),
            *await broker.controller.create_topics([NewTopic("u")], timeout_ms=-1, validate_only=True),
            *await broker.controller.create_partitions([MorePartitions("t", 2)], timeout_ms=0),
            *await broker.controller.delete_topics([TopicToDelete("t")], timeout_ms=0),
        ]
        assert [outcome.error for outcome in outcomes] == [ErrorCode.REQUEST_TIMED_OUT] * 4
        assert broker.holder.current is before

    on_broker(story)


def test_a_topic_made_anew_has_another_id_and_no_records():
    async def story(broker):
        first = await broker.create("t", good_x=1)
        produce(broker.replicas.get("t", 0), 5)
        await broker.controller.delete_topics([TopicToDelete("t")], timeout_ms=100)
        assert broker.replicas.get("t", 0) is None
        second = await broker.create("t")
        assert second.topic_id != first.topic_id
        assert broker.replicas.get_by_id(first.topic_id, 0) is None
        assert broker.replicas.get("t", 0).log.end_offset == 0
        assert broker.holder.current.overrides(topic_resource("t")) == {}
        await assert_store_and_image_agree(broker)

    on_broker(story)


def test_partitions_are_added_and_serve():
    async def story(broker):
        await broker.create("t", 2)
        kept = broker.replicas.get("t", 0)
        (outcome,) = await broker.controller.create_partitions([MorePartitions("t", 5)], timeout_ms=1)
        assert outcome.error == ErrorCode.NONE
        assert broker.replicas.get("t", 0) is kept
        assert produce(broker.replicas.get("t", 4)) == 0
        await assert_store_and_image_agree(broker)

    on_broker(story)


def test_config_changes_reach_the_logs():
    async def story(broker):
        await broker.create("t", 2, good_min_isr=2)
        assert broker.replicas.get("t", 1).log.config.min_insync_replicas == 2
        resource = topic_resource("t")
        (outcome,) = await broker.controller.alter_configs(
            [(resource, [ConfigChange("good.min.isr", 0, "3"), ConfigChange("good.x", 0, "y")])]
        )
        assert outcome.error == ErrorCode.NONE
        assert broker.replicas.get("t", 1).log.config.min_insync_replicas == 3
        assert broker.holder.current.overrides(resource) == {"good.min.isr": "3", "good.x": "y"}
        await assert_store_and_image_agree(broker)
        await broker.controller.replace_configs([(resource, [])])
        assert broker.replicas.get("t", 0).log.config.min_insync_replicas == 1
        assert await broker.store.get(resource.path) is None
        await assert_store_and_image_agree(broker)

    on_broker(story)


def test_operations_at_once_take_turns():
    async def story(broker):
        outcomes = await asyncio.gather(
            *(broker.controller.create_topics([NewTopic("same")], timeout_ms=1) for _ in range(3)),
            *(broker.controller.create_topics([NewTopic(f"t{n}")], timeout_ms=1) for n in range(3)),
        )
        errors = [outcome[0].error for outcome in outcomes]
        assert errors == [ErrorCode.NONE, *[ErrorCode.TOPIC_ALREADY_EXISTS] * 2, *[ErrorCode.NONE] * 3]
        await assert_store_and_image_agree(broker)

    on_broker(story)


def test_plans_that_take_long_are_made_aside():
    async def story(broker):
        aside = []

        async def run_blocking(function):
            aside.append(1)
            return await asyncio.to_thread(function)

        broker.controller._run_blocking = run_blocking
        await broker.create("small", 2)
        assert aside == []
        await broker.create("large", 300)
        assert aside == [1]
        grown = await broker.controller.create_partitions([MorePartitions("large", 301)], timeout_ms=1)
        assert (grown[0].error, aside) == (ErrorCode.NONE, [1, 1])
        assert [partition.index for partition in broker.holder.current.topics["large"].partitions] == list(
            range(301)
        )
        await broker.controller.delete_topics([TopicToDelete("small")], timeout_ms=1)
        assert aside == [1, 1]
        await broker.controller.delete_topics([TopicToDelete("large")], timeout_ms=1)
        assert aside == [1, 1, 1]
        await assert_store_and_image_agree(broker)

    on_broker(story)


def test_a_write_that_the_store_refuses_publishes_nothing():
    async def story(broker):
        await broker.store.delete("/brokers/topics")
        image = broker.holder.current
        with pytest.raises(NoNode):
            await broker.controller.create_topics([NewTopic("t")], timeout_ms=1)
        assert broker.holder.current is image
        assert broker.replicas.get("t", 0) is None

    on_broker(story)


def test_producer_ids_come_in_blocks_that_never_repeat():
    async def main():
        tree = None
        blocks = []
        for _ in range(2):
            broker = Broker(tree=tree)
            tree = broker.tree
            await broker.start()
            blocks += [await broker.controller.allocate_producer_ids() for _ in range(2)]
            await broker.store.close()
        assert blocks == [(0, 1000), (1000, 1000), (2000, 1000), (3000, 1000)]

    asyncio.run(main())


def test_another_broker_may_take_a_block_first():
    async def story(broker):
        get = broker.store.get

        async def raced(path):
            node = await get(path)
            if path == "/latest_producer_id_block" and node.version == 0:
                value = b'{"version":1,"broker":2,"block_start":"0","block_end":"999"}'
                await broker.store.multi([Put(path, value)])
            return node

        broker.store.get = raced
        assert await broker.controller.allocate_producer_ids() == (1000, 1000)

    on_broker(story)


@pytest.mark.parametrize("unclean", [False, True])
def test_restart_finds_everything_and_raises_epochs_after_a_crash(unclean):
    async def main():
        first = Broker()
        await first.start()
        created = await first.create("t", 2, good_x=1)
        produce(first.replicas.get("t", 1), 4)
        if unclean:
            first.logs.abandon()  # what was written is still there, as after kill -9
        else:
            first.logs.close()
        await first.store.close()
        second = Broker(first.files, first.tree)
        assert second.logs.unclean is unclean
        image = await second.start(unclean=second.logs.unclean)
        assert image.controller_epoch == 2
        assert image.topics["t"].topic_id == created.topic_id
        partition = second.replicas.get("t", 1)
        assert partition.leader_epoch == (1 if unclean else 0)
        assert partition.log.end_offset == 4
        assert produce(partition) == 4
        await assert_store_and_image_agree(second)

    asyncio.run(main())


def test_an_empty_store_adopts_what_lies_in_the_log_directories():
    async def main():
        first = Broker()
        await first.start()
        created = await first.create("t", 2)
        produce(first.replicas.get("t", 0), 4)
        first.logs.close()
        second = Broker(first.files)
        on_disk = [
            LogOnDisk(log.topic, log.partition, log.topic_id, log.leader_epochs.latest_epoch)
            for log in second.logs
        ]
        image = await second.start(on_disk=[*on_disk, LogOnDisk("broken", 3, None, 0)])
        assert list(image.topics) == ["t"]
        assert image.topics["t"].topic_id == created.topic_id
        assert [p.leader_epoch for p in image.topics["t"].partitions] == [1, 0]
        assert produce(second.replicas.get("t", 0)) == 4
        await assert_store_and_image_agree(second)

    asyncio.run(main())


def test_topics_that_kafka_created_in_a_shared_directory_are_adopted_beside_the_known_ones():
    async def main():
        first = Broker()
        await first.start()
        created = await first.create("known", 2)
        await first.store.close()
        second = Broker(first.files.crash(), first.tree)
        on_disk = [LogOnDisk("known", 0, bytes([9]) * 16, 7), LogOnDisk("new", 0, bytes([8]) * 16, 3)]
        image = await second.start(on_disk=on_disk, shared=True)
        assert {name: topic.topic_id for name, topic in image.topics.items()} == {
            "known": created.topic_id,
            "new": bytes([8]) * 16,
        }
        assert image.topics["new"].partitions[0].leader_epoch == 4
        await assert_store_and_image_agree(second)

    asyncio.run(main())


def test_partitions_that_kafka_added_in_a_shared_directory_are_adopted():
    async def main():
        first = Broker()
        await first.start()
        topic_id = (await first.create("t", 2)).topic_id
        await first.store.close()
        second = Broker(first.files.crash(), first.tree)
        on_disk = [LogOnDisk("t", index, topic_id, index) for index in (3, 1, 2)]
        image = await second.start(on_disk=on_disk, shared=True)
        assert image.topics["t"].topic_id == topic_id
        assert [p.leader_epoch for p in image.topics["t"].partitions[2:]] == [3, 4]
        assert produce(second.replicas.get("t", 3)) == 0
        await assert_store_and_image_agree(second)

    asyncio.run(main())


def test_a_store_whose_topics_were_deleted_adopts_nothing():
    async def main():
        first = Broker()
        await first.start()
        await first.create("t")
        await first.controller.delete_topics([TopicToDelete("t")], timeout_ms=1)
        await first.store.close()
        second = Broker(first.files.crash(), first.tree)

        def leftover():
            raise AssertionError("nobody may look at the logs")
            yield

        image = await second.start(on_disk=leftover())
        assert dict(image.topics) == {}

    asyncio.run(main())
