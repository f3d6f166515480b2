"""CreateTopics and CreatePartitions as plans: every refusal, and what is written."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication.controller.outcomes import ControllerSettings, MorePartitions, NewTopic
from replication.controller.topic_creation import plan_partitions, plan_topics
from replication.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from replication.metadata.load import load_image
from replication.metadata.memory_store import MemoryStore
from replication.metadata.store import ensure_path
from runtime.entropy import SeededRandom
from tests.unit.replication.cluster import Rules, topic_resource


def cluster(*ids, topics=()):
    image = ClusterImage(controller_epoch=3).with_brokers({i: BrokerImage(i, 1, {}) for i in ids})
    return image.with_topics(topics)


def existing(name, partitions=1, replicas=(1,), **fields):
    states = tuple(
        PartitionImage(i, replicas[0], 0, 0, replicas, replicas, **fields) for i in range(partitions)
    )
    return TopicImage(name, name.encode().ljust(16, b"."), states)


def plan(*topics, image=None, **settings):
    image = image or cluster(1)
    return plan_topics(image, topics, ControllerSettings(1, **settings), Rules(), SeededRandom(b"x"))


def refusal(topic, image=None, **settings):
    outcomes, changes = plan(topic, image=image, **settings)
    assert changes.operations == []
    assert changes.topics == {}
    assert (outcomes[0].num_partitions, outcomes[0].replication_factor) == (-1, -1)
    assert outcomes[0].topic_id == ZERO_UUID
    return outcomes[0].error, outcomes[0].message


def test_minus_one_means_the_brokers_default():
    outcomes, changes = plan(
        NewTopic("t"), image=cluster(1, 2, 3), num_partitions=4, default_replication_factor=2
    )
    assert (outcomes[0].num_partitions, outcomes[0].replication_factor) == (4, 2)
    topic = changes.topics["t"]
    assert topic.topic_id == outcomes[0].topic_id != ZERO_UUID
    for partition in topic.partitions:
        assert partition.leader == partition.replicas[0]
        assert partition.isr == partition.replicas
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (NewTopic("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid"),
        (NewTopic(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "the empty string"),
        (NewTopic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "longer"),
        (NewTopic("old"), ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'old' already exists."),
        (NewTopic("a_b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with existing topic: a.b"),
        (NewTopic("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "__cluster_metadata is prohibited"),
        (NewTopic("t", 0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (NewTopic("t", -2), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (NewTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (
            NewTopic("t", 1, 3),
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be "
            "reached because only 2 broker(s) are registered.",
        ),
        (NewTopic("t", 10_001), ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions"),
        (NewTopic("t", configs=(("good", None),)), ErrorCode.INVALID_CONFIG, "Null value not supported"),
        (NewTopic("t", configs=(("unknown", "1"),)), ErrorCode.INVALID_CONFIG, "Unknown topic config"),
        (NewTopic("t", configs=(("good", "bad"),)), ErrorCode.INVALID_CONFIG, "Invalid value bad"),
        (NewTopic("t", 1, -1, ((0, (1,)),)), ErrorCode.INVALID_REQUEST, "numPartitions was not set to -1"),
        (NewTopic("t", -1, 1, ((0, (1,)),)), ErrorCode.INVALID_REQUEST, "replication factor was not"),
        (NewTopic("t", assignments=((1, (1,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "consecutive"),
        (
            NewTopic("t", assignments=((0, (1,)), (2, (1,)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "consecutive",
        ),
        (
            NewTopic("t", assignments=((0, (1,)), (0, (2,)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "multiple manual partition assignments for partition 0",
        ),
        (NewTopic("t", assignments=((0, ()),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty replica list"),
        (NewTopic("t", assignments=((0, (1, 1)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (NewTopic("t", assignments=((0, (7,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 7, but no"),
        (NewTopic("t", assignments=((0, (-1,)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "invalid broker id"),
        (
            NewTopic("t", assignments=((0, (1,)), (1, (1, 2)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "not consistent with previous partitions",
        ),
    ],
)
def test_refusals(topic, error, message):
    image = cluster(1, 2, topics=[existing("old"), existing("a.b")])
    code, text = refusal(topic, image)
    assert code == error
    assert message in text


def test_a_repeated_name_is_answered_once_and_the_others_are_created():
    outcomes, changes = plan(NewTopic("a"), NewTopic("b", 1, 1), NewTopic("a"))
    assert [(o.name, o.error) for o in outcomes] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.NONE),
    ]
    assert list(changes.topics) == ["b"]


def test_two_new_names_of_one_request_may_not_collide():
    outcomes, changes = plan(NewTopic("a.b"), NewTopic("a_b"))
    assert [o.error for o in outcomes] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert list(changes.topics) == ["a.b"]


def test_too_many_partitions_in_all_refuse_every_topic():
    outcomes, changes = plan(NewTopic("a", 6000), NewTopic("b", 6000))
    assert [o.error for o in outcomes] == [ErrorCode.POLICY_VIOLATION] * 2
    assert changes.topics == {}


def test_an_assignment_is_taken_as_given():
    outcomes, changes = plan(NewTopic("t", assignments=((1, (2, 1)), (0, (3, 2)))), image=cluster(1, 2, 3))
    assert (outcomes[0].num_partitions, outcomes[0].replication_factor) == (2, 2)
    assert [p.replicas for p in changes.topics["t"].partitions] == [(3, 2), (2, 1)]
    assert [p.leader for p in changes.topics["t"].partitions] == [3, 2]


async def store_with(operations):
    store = MemoryStore()
    await store.open()
    for path in ("/brokers/topics", "/config/topics"):
        await ensure_path(store, path)
    await store.multi(operations)
    return store


def test_what_is_written_loads_into_what_is_published():
    import asyncio

    async def main():
        image = cluster(1, 2)
        configs = (("good.x", "1"),)
        _, changes = plan(NewTopic("a", 3, 2, configs=configs), NewTopic("b"), image=image)
        store = await store_with(changes.operations)
        published = changes.image_after(image)
        loaded = load_image(await store.subtree("/"), -1, 3)
        assert dict(loaded.topics) == dict(published.topics)
        assert (
            loaded.overrides(topic_resource("a"))
            == published.overrides(topic_resource("a"))
            == {"good.x": "1"}
        )
        _, more = plan_partitions(published, [MorePartitions("a", 5)])
        await store.multi(more.operations)
        assert load_image(await store.subtree("/"), -1, 3).topics["a"] == more.topics["a"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (MorePartitions("missing", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
        (MorePartitions("t", 2), ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (MorePartitions("t", 1), ErrorCode.INVALID_PARTITIONS, "1 would not be an increase."),
        (MorePartitions("t", -1), ErrorCode.INVALID_PARTITIONS, "would not be an increase."),
        (MorePartitions("t", 20_000), ErrorCode.POLICY_VIOLATION, "Excessively"),
        (MorePartitions("moving", 9), ErrorCode.REASSIGNMENT_IN_PROGRESS, "reassigned"),
        (MorePartitions("t", 4, ((1, 2),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "only 1 assignment"),
        (MorePartitions("t", 3, ((1,),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not consistent"),
        (MorePartitions("t", 3, ((1, 9),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9"),
        (MorePartitions("t", 3, ((1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (MorePartitions("t", 3, ((),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "empty"),
    ],
)
def test_refusals_to_add_partitions(wanted, error, message):
    image = cluster(1, 2, topics=[existing("t", 2, (1, 2)), existing("moving", 1, (1, 2), adding=(2,))])
    outcomes, changes = plan_partitions(image, [wanted])
    assert outcomes[0].error == error
    assert (outcomes[0].message is None) if message is None else message in outcomes[0].message
    assert changes.operations == []


def test_partitions_are_added_with_the_replication_factor_of_the_first():
    topic = existing("t", 2, (2, 1))
    image = cluster(1, 2, 3, topics=[topic])
    outcomes, changes = plan_partitions(image, [MorePartitions("t", 4)])
    assert outcomes[0].error == ErrorCode.NONE
    grown = changes.topics["t"]
    assert grown.partitions[:2] == topic.partitions
    assert grown.topic_id == topic.topic_id
    # start and shift are the place of the first partition's first replica among the brokers
    assert [p.replicas for p in grown.partitions[2:]] == [(1, 3), (2, 3)]


def test_a_repeated_name_in_create_partitions_is_answered_once():
    image = cluster(1, topics=[existing("t")])
    outcomes, changes = plan_partitions(image, [MorePartitions("t", 2), MorePartitions("t", 3)])
    assert [(o.name, o.error) for o in outcomes] == [("t", ErrorCode.INVALID_REQUEST)]
    assert changes.operations == []


def test_brokers_that_are_cordoned_get_no_new_partitions():
    """KIP-1066: this one by its own settings, others by what their registration says."""
    image = cluster(1, 2, 3)
    cordoned = image.with_brokers({**image.brokers, 2: BrokerImage(2, 1, {}, cordoned=True)})
    outcomes, changes = plan(NewTopic("t", 6, 2), image=cordoned)
    assert outcomes[0].error is ErrorCode.NONE
    assert {each for partition in changes.topics["t"].partitions for each in partition.replicas} == {1, 3}
    error, message = refusal(NewTopic("t", 1, 2), cordoned, is_cordoned=lambda: True)
    assert error is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "only 1 broker(s)" in message
    error, message = refusal(NewTopic("t", assignments=((0, (1, 2)),)), cordoned)
    assert error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert message == (
        "The manual partition assignment includes broker 2, but all its log directories are cordoned."
    )
