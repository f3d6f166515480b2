"""UpdateMetadata under its fences."""

from __future__ import annotations

from protocol.errors import ErrorCode
from tests.unit.replication.cluster.stage import TOPIC, Stage, run


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
