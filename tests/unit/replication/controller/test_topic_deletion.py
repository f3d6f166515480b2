"""DeleteTopics as a plan."""

from __future__ import annotations

from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication.controller.outcomes import TopicToDelete
from replication.controller.topic_deletion import plan_deletions
from tests.unit.replication.cluster import topic_resource
from tests.unit.replication.controller.test_topic_creation import cluster, existing

A, B = existing("a", 2), existing("b")
IMAGE = cluster(1, topics=[A, B]).with_configs({topic_resource("a"): {"k": "v"}})


def plan(*wanted):
    outcomes, deletions = plan_deletions(IMAGE, wanted)
    return [(o.name, o.topic_id, o.error) for o in outcomes], deletions


def test_by_name_and_by_id():
    outcomes, deletions = plan(TopicToDelete("a"), TopicToDelete(None, B.topic_id))
    assert outcomes == [("a", A.topic_id, ErrorCode.NONE), ("b", B.topic_id, ErrorCode.NONE)]
    after = deletions.image_after(IMAGE)
    assert dict(after.topics) == dict(after.topics_by_id) == dict(after.configs) == {}
    assert [operation.path for operation in deletions.operations] == [
        "/brokers/topics/a/partitions/0/state",
        "/brokers/topics/a/partitions/0",
        "/brokers/topics/a/partitions/1/state",
        "/brokers/topics/a/partitions/1",
        "/brokers/topics/a/partitions",
        "/brokers/topics/a",
        "/config/topics/a",
        "/brokers/topics/b/partitions/0/state",
        "/brokers/topics/b/partitions/0",
        "/brokers/topics/b/partitions",
        "/brokers/topics/b",
    ]


def test_refusals_leave_everything():
    unknown = bytes([9]) * 16
    outcomes, deletions = plan(
        TopicToDelete("missing"),
        TopicToDelete(None, unknown),
        TopicToDelete(None),
        TopicToDelete("a", A.topic_id),
        TopicToDelete("b"),
        TopicToDelete("b"),
    )
    assert outcomes == [
        ("missing", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, unknown, ErrorCode.UNKNOWN_TOPIC_ID),
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
        ("a", A.topic_id, ErrorCode.INVALID_REQUEST),
        ("b", ZERO_UUID, ErrorCode.INVALID_REQUEST),
    ]
    assert deletions.operations == []
    assert deletions.image_after(IMAGE) is IMAGE


def test_one_topic_by_name_and_by_id_is_deleted_once():
    outcomes, deletions = plan(TopicToDelete("b"), TopicToDelete(None, B.topic_id))
    assert [error for _, _, error in outcomes] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert list(deletions.removed) == ["b"]
