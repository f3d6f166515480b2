"""The state as an image."""

from __future__ import annotations

from replication.controller.assignment import Assignment
from replication.controller.cluster_state import TopicPartition
from replication.controller.state_image import image_of
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import PartitionImage
from tests.unit.replication.controller.desk import Desk, story


@story
async def test_topics_are_found_by_name_and_id():
    at = await Desk.with_topics({"t": [(1, 2), (2, 3)], "u": [(3,)]})
    image = image_of(at.state)
    topic = image.topics["t"]
    assert topic.topic_id == b"t" * 16
    assert topic.partitions[1] == PartitionImage(1, 2, 0, 0, (2, 3), (2, 3))
    assert image.topics_by_id[b"t" * 16] == topic
    assert list(image.topics) == ["t", "u"]
    assert (len(image.topics), len(image.topics_by_id), "x" in image.topics) == (2, 2, False)
    assert list(image.topics_by_id) == [b"t" * 16, b"u" * 16]
    assert (image.controller_id, image.controller_epoch) == (1, 1)


@story
async def test_a_partition_without_a_leader_yet_and_one_that_moves():
    at = await Desk.with_topics({"t": [(1, 2)]})
    moving = Assignment((3, 1, 2), (3,), (1,))
    at.state.assign(TopicPartition("t", 0), moving)
    del at.state.leaderships[TopicPartition("t", 0)]
    assert image_of(at.state).topics["t"].partitions == (
        PartitionImage(0, -1, -1, -1, (), (3, 1, 2), (3,), (1,)),
    )


@story
async def test_brokers_that_shut_down_get_no_replicas():
    at = await Desk.with_topics()
    at.state.shutting_down[2] = None
    resource = ConfigResource(ConfigType.TOPIC, "t")
    image = image_of(at.state, {resource: {"a": "b"}})
    assert list(image.brokers) == [1, 3]
    assert image.overrides(resource) == {"a": "b"}
