"""Overrides are changed by any broker, and all are told."""

from __future__ import annotations

import asyncio
import json

import pytest

from protocol.errors import ErrorCode
from replication.controller import config_requests
from replication.controller.config_changes import plan_increments
from replication.metadata import paths, payloads
from replication.metadata.configs import AlterOperation, ConfigChange, ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, TopicImage
from replication.metadata.store import ConnectionLost, Create, Put, SessionExpired
from tests.unit.replication.cluster import Rules
from tests.unit.replication.controller.desk import Desk, story

RESOURCE = ConfigResource(ConfigType.TOPIC, "t")
IMAGE = ClusterImage(topics={"t": TopicImage("t", b"t" * 16, ())})


async def change(at, key, value, *, operation=AlterOperation.SET, validate_only=False, resource=RESOURCE):
    wanted = [(resource, [ConfigChange(key, operation, value)])]
    return await config_requests.change_configs(
        at.store,
        IMAGE,
        [resource],
        lambda image: plan_increments(image, wanted, Rules()),
        validate_only=validate_only,
    )


def stored(at, resource=RESOURCE):
    return payloads.decode_config(resource.path, at.tree.nodes[resource.path].value)


async def notes(at):
    return [
        json.loads((await at.store.get(f"{paths.CONFIG_CHANGES}/{name}")).value)["entity_path"]
        for name in await at.store.children(paths.CONFIG_CHANGES)
    ]


@story
async def test_a_change_is_written_and_noted():
    at = await Desk.with_topics()
    outcomes = await change(at, "good.a", "1")
    assert [o.error for o in outcomes] == [ErrorCode.NONE]
    await change(at, "good.b", "2")
    assert stored(at) == {"good.a": "1", "good.b": "2"}
    assert await notes(at) == ["topics/t", "topics/t"]
    names = await at.store.children(paths.CONFIG_CHANGES)
    assert names == ["config_change_0000000000", "config_change_0000000001"]


@story
async def test_the_default_of_all_brokers_has_its_own_name():
    at = await Desk.with_topics()
    await change(at, "good.a", "1", resource=ConfigResource(ConfigType.BROKER, ""))
    assert await notes(at) == ["brokers/<default>"]


@story
async def test_the_last_override_takes_the_node_with_it():
    at = await Desk.with_topics()
    await change(at, "good.a", "1")
    await change(at, "good.a", None, operation=AlterOperation.DELETE)
    assert not at.exists(RESOURCE.path)
    assert await notes(at) == ["topics/t", "topics/t"]


@story
async def test_what_is_refused_validated_or_the_same_already_is_not_noted():
    at = await Desk.with_topics()
    assert (await change(at, "bad", "1"))[0].error is ErrorCode.INVALID_CONFIG
    assert (await change(at, "good.a", "1", validate_only=True))[0].error is ErrorCode.NONE
    assert not at.exists(RESOURCE.path)
    logger = ConfigResource(ConfigType.BROKER_LOGGER, "1")
    assert (await change(at, "good.a", "1", resource=logger))[0].error is ErrorCode.INVALID_REQUEST
    assert await notes(at) == []


@story
async def test_changes_of_two_brokers_at_once_are_both_kept():
    at = await Desk.with_topics()
    get, others = at.store.get, [("good.x", "1"), ("good.y", "2")]

    async def late(path):
        node = await get(path)
        if others:
            before = {} if node is None else payloads.decode_config(path, node.value)
            value = payloads.encode_config({**before, **dict([others.pop(0)])})
            await at.store.multi([Create(path, value) if node is None else Put(path, value)])
        return node

    at.store.get = late
    await change(at, "good.a", "3")
    at.store.get = get
    assert stored(at) == {"good.x": "1", "good.y": "2", "good.a": "3"}


@pytest.mark.parametrize("lost", [ConnectionLost, SessionExpired])
def test_a_write_whose_answer_was_lost_is_noted(lost):
    asyncio.run(written_and_lost(lost))


async def written_and_lost(lost):
    at = await Desk.with_topics()
    multi = at.store.multi

    async def applied_and_lost(operations):
        at.store.multi = multi
        await multi(operations)
        raise lost("/")

    at.store.multi = applied_and_lost
    outcomes = await change(at, "good.a", "1")
    assert [o.error for o in outcomes] == [ErrorCode.NONE]
    assert stored(at) == {"good.a": "1"}
    assert await notes(at) == ["topics/t"]


@story
async def test_a_write_that_was_lost_is_made_again():
    at = await Desk.with_topics()
    multi = at.store.multi

    async def lost(operations):
        at.store.multi = multi
        raise ConnectionLost("/")

    at.store.multi = lost
    await change(at, "good.a", "1")
    assert stored(at) == {"good.a": "1"}
    assert await notes(at) == ["topics/t"]


@story
async def test_a_note_that_was_lost_is_made_again():
    at = await Desk.with_topics()
    create = at.store.create_sequential

    async def lost(prefix, value):
        at.store.create_sequential = create
        raise ConnectionLost(prefix)

    at.store.create_sequential = lost
    await change(at, "good.a", "1")
    assert await notes(at) == ["topics/t"]
