"""The door of the cluster's controller, from a handler's side."""

from __future__ import annotations

import asyncio

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.cluster_state import TopicPartition
from replication.controller.feature_changes import FeatureUpdate
from replication.controller.leader_requests import ElectionType
from replication.controller.outcomes import MorePartitions, NewTopic, TopicToDelete
from replication.metadata import paths
from replication.metadata.configs import AlterOperation, ConfigChange, ConfigResource, ConfigType
from tests.unit.replication.controller.test_cluster_controller import create, leaderless, story
from tests.unit.replication.controller.world import Host, World

T0 = TopicPartition("t", 0)


async def other(world: World) -> Host:
    """A broker that is not the controller."""
    active = await world.active()
    return next(host for host in world.hosts.values() if host is not active)


@story
async def test_who_is_not_the_controller_says_so(world):
    admin = (await other(world)).admin
    error = ErrorCode.NOT_CONTROLLER
    topics = [NewTopic("a", 1, 1), NewTopic("a", 1, 1), NewTopic("b", 1, 1)]
    created = await admin.create_topics(topics, timeout_ms=100)
    assert [(o.name, o.error, o.message) for o in created] == [
        (name, error, "This is not the correct controller for this cluster.") for name in ("a", "b")
    ]
    deleted = await admin.delete_topics([TopicToDelete("a")], timeout_ms=100)
    assert [o.error for o in deleted] == [error]
    grown = await admin.create_partitions([MorePartitions("a", 3)], timeout_ms=100)
    assert [o.error for o in grown] == [error]
    assert (await admin.update_features([]))[0] is error
    assert await admin.allocate_producer_ids(1, 1) == (error, 0, 0)
    assert (await admin.alter_partition(m.AlterPartitionRequest(), 3)).error_code == error
    assert await admin.controlled_shutdown(1, 1) == (error, [])
    assert await admin.alter_reassignments({T0: (1,)}) is None
    assert await admin.list_reassignments(None) is None
    assert await admin.elect_leaders(None, ElectionType.PREFERRED, timeout_ms=100) is None


@story
async def test_created_topics_are_shown_by_this_broker_when_the_answer_comes(world):
    host = await world.active()
    await create(world, (1, 2), (2, 3))
    image = host.holder.current
    assert [p.leader for p in image.topics["t"].partitions] == [1, 2]
    (outcome,) = await host.admin.create_partitions([MorePartitions("t", 3)], timeout_ms=1000)
    assert outcome.error is ErrorCode.NONE
    assert len(host.holder.current.topics["t"].partitions) == 3
    (outcome,) = await host.admin.delete_topics([TopicToDelete("t")], timeout_ms=1000)
    assert outcome.error is ErrorCode.NONE
    assert "t" not in host.holder.current.topics


@story
async def test_what_is_not_shown_in_time_times_out_and_goes_on(world):
    host = await world.active()
    (outcome,) = await host.admin.create_topics([NewTopic("t", 1, 3)], timeout_ms=0)
    assert (outcome.error, outcome.message) == (ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
    await asyncio.sleep(0.5)
    assert "t" in host.holder.current.topics
    (outcome,) = await host.admin.create_partitions([MorePartitions("t", 2)], timeout_ms=0)
    assert outcome.error is ErrorCode.REQUEST_TIMED_OUT
    (outcome,) = await host.admin.delete_topics([TopicToDelete("t")], timeout_ms=0)
    assert outcome.error is ErrorCode.REQUEST_TIMED_OUT
    await asyncio.sleep(1)
    assert paths.topic("t") not in world.tree.nodes


@story
async def test_validation_alone_waits_for_nothing(world):
    host = await world.active()
    (outcome,) = await host.admin.create_topics([NewTopic("t", 1, 3)], timeout_ms=0, validate_only=True)
    assert outcome.error is ErrorCode.NONE
    await create(world, (1, 2))
    (outcome,) = await host.admin.create_partitions(
        [MorePartitions("t", 2)], timeout_ms=0, validate_only=True
    )
    assert outcome.error is ErrorCode.NONE


@story
async def test_any_broker_changes_configurations(world):
    await create(world, (1, 2))
    host, resource = await other(world), ConfigResource(ConfigType.TOPIC, "t")
    await asyncio.sleep(0.1)
    change = ConfigChange("good.a", AlterOperation.SET, "1")
    (outcome,) = await host.admin.alter_configs([(resource, [change])])
    assert outcome.error is ErrorCode.NONE
    (outcome,) = await host.admin.replace_configs([(resource, [("good.b", "2")])])
    assert outcome.error is ErrorCode.NONE
    assert world.tree.nodes[resource.path].value == b'{"version":1,"config":{"good.b":"2"}}'
    assert len(await host.store.children(paths.CONFIG_CHANGES)) == 2


@story
async def test_features_are_finalized_once_for_all(world):
    host = await world.active()
    wanted = [FeatureUpdate("group.version", 0, 3)]
    assert await host.admin.update_features(wanted, validate_only=True) == (ErrorCode.NONE, None)
    assert paths.FEATURES not in world.tree.nodes
    assert await host.admin.update_features(wanted) == (ErrorCode.NONE, None)
    assert paths.FEATURES in world.tree.nodes
    assert (await host.admin.update_features([FeatureUpdate("nobody", 9)]))[0] is (
        ErrorCode.INVALID_UPDATE_VERSION
    )


@story
async def test_no_feature_is_switched_on_that_a_registered_broker_does_not_know(world):
    host = await world.active()
    assert await host.admin.update_features([FeatureUpdate("group.version", 0, 3)]) == (ErrorCode.NONE, None)
    kafka = await other(world)
    kafka.features = {}
    await kafka.expire()
    on = [FeatureUpdate("group.version", 1)]
    for _ in range(20):  # each is an event of the controller's, and so is the new registration
        error, message = await host.admin.update_features(on, validate_only=True)
    assert error is ErrorCode.INVALID_UPDATE_VERSION
    assert f"Broker {kafka.id} does not support this feature." in message


@story
async def test_producer_ids_go_to_registered_brokers(world):
    host = await world.active()
    assert await host.admin.allocate_producer_ids(2, world.hosts[2].epoch) == (ErrorCode.NONE, 0, 1000)
    assert (await host.admin.allocate_producer_ids(2, 1))[0] is ErrorCode.STALE_BROKER_EPOCH


@story
async def test_a_partition_is_moved_from_the_request_to_the_end(world):
    await create(world, (1, 2))
    host = await world.active()
    assert await host.admin.alter_reassignments({T0: (3,)}) == {T0: (ErrorCode.NONE, None)}
    listed = await host.admin.list_reassignments(None)
    assert (listed[T0].adding, listed[T0].removing) == ((3,), (1, 2))
    await asyncio.sleep(1)
    assert await host.admin.list_reassignments([T0]) == {}
    assert world.topic_of("t").assignment == {0: (3,)}
    assert [T0 in world.hosts[broker].disk for broker in (1, 2, 3)] == [False, False, True]


@story
async def test_a_stopping_broker_gives_its_leaderships_away(world):
    await create(world, (1, 2, 3), (2, 1, 3))
    host = await world.active()
    answer = await host.admin.controlled_shutdown(1, world.hosts[1].epoch)
    assert answer == (ErrorCode.NONE, [])
    assert world.state_of("t", 0).leader == 2
    assert 1 not in world.state_of("t", 1).isr
    await asyncio.sleep(1)
    assert 1 not in world.state_of("t", 1).isr


@story(settings={"auto_balance": False})
async def test_elections_answer_when_the_leader_is_shown(world):
    await create(world, (1, 2), (2, 1))
    await world.hosts[1].kill()
    await asyncio.sleep(0.5)
    await world.hosts[1].start()
    await asyncio.sleep(1)
    host = await world.active()
    outcomes = await host.admin.elect_leaders([T0], ElectionType.PREFERRED, timeout_ms=0)
    assert outcomes[T0][0] is ErrorCode.REQUEST_TIMED_OUT
    outcomes = await host.admin.elect_leaders([T0], ElectionType.PREFERRED, timeout_ms=1000)
    assert outcomes[T0][0] is ErrorCode.ELECTION_NOT_NEEDED
    assert await host.admin.elect_leaders(None, ElectionType.PREFERRED, timeout_ms=1000) == {}


@story
async def test_unclean_leaders_are_elected_on_request_and_by_configuration(world):
    await leaderless(world)
    host = await world.active()
    outcomes = await host.admin.elect_leaders([T0], ElectionType.UNCLEAN, timeout_ms=1000)
    assert outcomes == {T0: (ErrorCode.NONE, None)}
    assert host.holder.current.topics["t"].partitions[0].leader == 2
