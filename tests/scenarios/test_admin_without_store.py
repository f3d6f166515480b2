"""What administrators are answered when the metadata store is away, has ended the session, or refuses.

These are all requests that a broker's handlers take to the store. Configurations are written by any broker
and wait for the store, however long, as Kafka's brokers do; the rest is the controller's, which waits for its
connection and is none any more without its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.cluster_admin import ClusterAdmin
from replication.controller.cluster_state import TopicPartition
from replication.controller.feature_changes import FeatureUpdate
from replication.controller.leader_requests import ElectionType
from replication.controller.outcomes import MorePartitions, NewTopic, TopicToDelete
from replication.metadata.configs import AlterOperation, ConfigChange, ConfigResource, ConfigType
from replication.metadata.store import StoreFailed
from tests.unit.replication.controller.test_cluster_controller import create, story

T0 = TopicPartition("t", 0)
TOPIC = ConfigResource(ConfigType.TOPIC, "t")
AWAY_S = 2.0


async def create_topics(admin: ClusterAdmin) -> ErrorCode:
    (outcome,) = await admin.create_topics([NewTopic("new", 1, 2)], timeout_ms=60_000)
    return outcome.error


async def delete_topics(admin: ClusterAdmin) -> ErrorCode:
    (outcome,) = await admin.delete_topics([TopicToDelete("t")], timeout_ms=60_000)
    return outcome.error


async def create_partitions(admin: ClusterAdmin) -> ErrorCode:
    (outcome,) = await admin.create_partitions([MorePartitions("t", 3)], timeout_ms=60_000)
    return outcome.error


async def alter_configs(admin: ClusterAdmin) -> ErrorCode:
    changes = [ConfigChange("good.a", AlterOperation.SET, "1")]
    (outcome,) = await admin.alter_configs([(TOPIC, changes)])
    return outcome.error


async def replace_configs(admin: ClusterAdmin) -> ErrorCode:
    (outcome,) = await admin.replace_configs([(TOPIC, [("good.a", "1")])])
    return outcome.error


async def update_features(admin: ClusterAdmin) -> ErrorCode:
    return (await admin.update_features([FeatureUpdate("group.version", 0, 3)]))[0]


async def allocate_producer_ids(admin: ClusterAdmin) -> ErrorCode:
    error, _, _ = await admin.allocate_producer_ids(1, -1)
    return error if error is not ErrorCode.STALE_BROKER_EPOCH else ErrorCode.NONE


async def alter_reassignments(admin: ClusterAdmin) -> ErrorCode:
    outcomes = await admin.alter_reassignments({T0: (2, 3)})
    return ErrorCode.NOT_CONTROLLER if outcomes is None else outcomes[T0][0]


async def list_reassignments(admin: ClusterAdmin) -> ErrorCode:
    return ErrorCode.NOT_CONTROLLER if await admin.list_reassignments(None) is None else ErrorCode.NONE


async def elect_leaders(admin: ClusterAdmin) -> ErrorCode:
    outcomes = await admin.elect_leaders([T0], ElectionType.PREFERRED, timeout_ms=60_000)
    error = ErrorCode.NOT_CONTROLLER if outcomes is None else outcomes[T0][0]
    return error if error is not ErrorCode.ELECTION_NOT_NEEDED else ErrorCode.NONE


async def alter_partition(admin: ClusterAdmin) -> ErrorCode:
    error = ErrorCode((await admin.alter_partition(m.AlterPartitionRequest(broker_id=9), 3)).error_code)
    return error if error is not ErrorCode.STALE_BROKER_EPOCH else ErrorCode.NONE


async def controlled_shutdown(admin: ClusterAdmin) -> ErrorCode:
    return (await admin.controlled_shutdown(admin.settings.node_id, 1 << 40))[0]


Ask = Callable[[ClusterAdmin], Awaitable[ErrorCode]]

WRITE_CONFIGS: list[Ask] = [alter_configs, replace_configs]
ASK_THE_CONTROLLER: list[Ask] = [
    create_topics,
    delete_topics,
    create_partitions,
    update_features,
    allocate_producer_ids,
    alter_reassignments,
    list_reassignments,
    elect_leaders,
    alter_partition,
    controlled_shutdown,
]
WRITE: list[Ask] = [*WRITE_CONFIGS, create_topics, delete_topics, create_partitions, update_features]
WRITE.append(alter_reassignments)


@pytest.mark.parametrize("ask", [*WRITE_CONFIGS, *ASK_THE_CONTROLLER])
def test_a_store_that_is_away_for_a_while_is_waited_for(ask: Ask):
    @story
    async def run(world):
        await create(world, (1, 2))
        host = await world.active()
        host.store.suspend()
        asked = asyncio.create_task(ask(host.admin))
        await asyncio.sleep(AWAY_S)
        host.store.resume()
        assert await asked is ErrorCode.NONE

    run()


@pytest.mark.parametrize("ask", WRITE_CONFIGS)
def test_configurations_are_written_in_the_next_session(ask: Ask):
    @story
    async def run(world):
        await create(world, (1, 2))
        host = await world.active()
        host.store.suspend()
        asked = asyncio.create_task(ask(host.admin))
        await asyncio.sleep(AWAY_S)
        await host.expire()
        assert await asked is ErrorCode.NONE

    run()


@pytest.mark.parametrize("ask", [each for each in ASK_THE_CONTROLLER if each in WRITE])
def test_the_controller_is_none_any_more_without_its_session(ask: Ask):
    @story
    async def run(world):
        await create(world, (1, 2))
        host = await world.active()
        host.store.suspend()
        asked = asyncio.create_task(ask(host.admin))
        await asyncio.sleep(AWAY_S)
        await host.expire()
        assert await asked is ErrorCode.NOT_CONTROLLER

    run()


@pytest.mark.parametrize("ask", WRITE)
def test_what_the_store_refuses_is_told_and_the_next_request_is_served(ask: Ask):
    """The handler's -1: see tests/unit/broker/net/test_dispatch.py."""

    @story
    async def run(world):
        await create(world, (1, 2))
        host = await world.active()
        multi = host.store.multi

        async def full(operations):
            host.store.multi = multi
            raise StoreFailed("/", "the disk is full")

        host.store.multi = full
        with pytest.raises(StoreFailed):
            await ask(host.admin)
        host = await world.active()
        assert await ask(host.admin) is ErrorCode.NONE

    run()
