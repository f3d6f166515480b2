"""Topics are created, grown and deleted on request."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.controller import topic_requests
from replication.controller.outcomes import (
    ControllerSettings,
    MorePartitions,
    NewTopic,
    TopicToDelete,
)
from replication.metadata import paths, payloads
from replication.metadata.configs import ConfigResource, ConfigType
from runtime.entropy import SeededRandom
from tests.unit.replication.cluster import Rules
from tests.unit.replication.controller.desk import Desk, story

CONFIG = ConfigResource(ConfigType.TOPIC, "t").path


async def create(at, *topics, validate_only=False):
    return await topic_requests.create_topics(
        at.reign, topics, ControllerSettings(1), Rules(), SeededRandom(b"x"), validate_only=validate_only
    )


@story
async def test_a_created_topic_has_its_nodes_and_leaders_at_once():
    at = await Desk.with_topics()
    topic = NewTopic("t", assignments=((0, (1, 2)), (1, (3, 1))), configs=(("good.key", "v"),))
    outcomes = await create(at, topic, NewTopic("bad/name"))
    assert [(o.name, o.error) for o in outcomes] == [
        ("t", ErrorCode.NONE),
        ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert at.topic().assignment == {0: (1, 2), 1: (3, 1)}
    assert at.topic().topic_id == outcomes[0].topic_id
    assert at.leads("t", 1) == (3, 0, (3, 1))
    assert payloads.decode_config(CONFIG, at.tree.nodes[CONFIG].value) == {"good.key": "v"}


@story
async def test_validation_alone_writes_nothing():
    at = await Desk.with_topics()
    assert (await create(at, NewTopic("t", 1, 1), validate_only=True))[0].error is ErrorCode.NONE
    assert not at.exists(paths.topic("t"))


@story
async def test_overrides_that_a_topic_of_this_name_left_are_replaced():
    at = await Desk.with_topics()
    await at.store.create(CONFIG, payloads.encode_config({"old": "1"}))
    await create(at, NewTopic("t", 1, 1))
    assert payloads.decode_config(CONFIG, at.tree.nodes[CONFIG].value) == {}


@story
async def test_a_topic_that_exists_or_is_on_its_way_out_cannot_be_created():
    at = await Desk.with_topics({"t": [(1,)]})
    (outcome,) = await create(at, NewTopic("t", 1, 1))
    assert (outcome.error, outcome.message) == (
        ErrorCode.TOPIC_ALREADY_EXISTS,
        "Topic 't' already exists.",
    )
    at.state.deleting["t"] = None
    (outcome,) = await create(at, NewTopic("t", 1, 1))
    assert outcome.message == "Topic 't' is marked for deletion."


@story
async def test_a_topic_that_another_broker_has_just_created_exists():
    at = await Desk.with_topics()
    await at.add_topic("t", [(1,)])
    outcomes = await create(at, NewTopic("t", 1, 1), NewTopic("u", 1, 1))
    assert [o.error for o in outcomes] == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
    assert at.leads("t") == (1, 0, (1,))
    assert at.leads("u")[1] == 0


@story
async def test_partitions_are_added():
    at = await Desk.with_topics({"t": [(1, 2)]})
    (outcome,) = await topic_requests.create_partitions(
        at.reign, [MorePartitions("t", 3, ((3, 1), (2, 3)))], validate_only=False
    )
    assert outcome.error is ErrorCode.NONE
    assert at.topic().assignment == {0: (1, 2), 1: (3, 1), 2: (2, 3)}
    assert at.leads("t", 2) == (2, 0, (2, 3))
    assert at.leads("t", 0) == (1, 0, (1, 2))


@story
async def test_partitions_are_not_added_while_one_is_reassigned_or_the_topic_deleted():
    at = await Desk.with_topics({"t": [(1, 2)]})
    partition = at.state.partitions_of("t")[0]

    async def grow(validate_only=False):
        wanted = [MorePartitions("t", 2)]
        return (await topic_requests.create_partitions(at.reign, wanted, validate_only=validate_only))[
            0
        ].error

    assert await grow(validate_only=True) is ErrorCode.NONE
    await at.reign.reassignments.reassign(partition, at.state.assignment(partition).towards((3,)))
    assert await grow() is ErrorCode.REASSIGNMENT_IN_PROGRESS
    await at.in_sync(1, 2, 3)
    at.state.deleting["t"] = None
    assert await grow() is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(at.topic().assignment) == [0]


@story
async def test_a_deletion_is_begun_and_may_be_asked_for_again():
    at = await Desk.with_topics({"t": [(1, 2)], "u": [(1,)]})
    await at.goes(2)
    outcomes = await topic_requests.delete_topics(
        at.reign, [TopicToDelete("t"), TopicToDelete(None, b"u" * 16), TopicToDelete("x")]
    )
    assert [o.error for o in outcomes] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert at.exists(f"{paths.DELETE_TOPICS}/t")
    assert "SR 1 u-0 -2 delete" in at.told()
    again = await topic_requests.delete_topics(at.reign, [TopicToDelete("t"), TopicToDelete(None, b"u" * 16)])
    assert [o.error for o in again] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]


@story
async def test_a_deletion_that_waits_may_be_asked_for_again():
    at = await Desk.with_topics({"t": [(1, 2)]})
    partition = at.state.partitions_of("t")[0]
    await at.reign.reassignments.reassign(partition, at.state.assignment(partition).towards((3,)))
    for _ in range(2):
        (outcome,) = await topic_requests.delete_topics(at.reign, [TopicToDelete("t")])
        assert outcome.error is ErrorCode.NONE
    assert at.state.deletion_started == {}
