"""UpdateMetadata under its fences."""

from __future__ import annotations

import asyncio

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata.configs import ConfigResource, ConfigType
from tests.unit.replication.cluster.stage import TOPIC, Stage, run

R = m.UpdateMetadataRequest


def test_a_new_image_is_published_before_the_answer():
    stage = Stage(2)
    stage.stored[0].update(leader=2, epoch=3)
    node, seen = stage[1], []
    node.holder.subscribe(lambda old, new: seen.append(new.partition(TOPIC, 0).leader))
    answer = run(node.update_metadata.handle(stage.metadata(node)))
    assert answer.error_code == ErrorCode.NONE
    assert seen == [2]


def test_a_stale_controller_changes_nothing():
    stage = Stage(2)
    before = stage[1].holder.current
    stage.controller_epoch = 0
    answer = run(stage[1].update_metadata.handle(stage.metadata(stage[1])))
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert stage[1].holder.current is before


def test_many_topics_are_made_in_pieces_and_what_others_publish_meanwhile_stays():
    async def story():
        node = Stage(1)[1]
        topics = [
            R.UpdateMetadataTopicState(
                topic_name=f"t{number}",
                topic_id=number.to_bytes(16, "big"),
                partition_states=[R.UpdateMetadataPartitionState(leader=1, isr=[1], replicas=[1])],
            )
            for number in range(1, 201)
        ]
        asked = R(controller_id=1, controller_epoch=9, broker_epoch=1, topic_states=topics)
        handling = asyncio.ensure_future(node.update_metadata.handle(asked))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not handling.done()
        resource = ConfigResource(ConfigType.TOPIC, "t1")
        node.holder.publish(node.holder.current.with_configs({resource: {"retention.ms": "1"}}))
        assert (await handling).error_code == ErrorCode.NONE
        assert node.holder.current.overrides(resource) == {"retention.ms": "1"}
        assert len(node.holder.current.topics) >= 200

    asyncio.run(story())
