"""Random histories: whatever is asked of a store, the store in memory answers the same.

Both get the same calls by the same sessions. Compared are results, refusals with the path and the operation
they name, and in the end the trees; ids of creations and sessions by their order and owner. And who watches a
node has heard of something whenever it is not what it was.
"""

from __future__ import annotations

import asyncio
import random
import re

import pytest

from replication.metadata.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    Node,
    Put,
    StoreError,
)
from tests.contract.metadata_worlds import (
    MemoryWorld,
    SharedSqliteWorld,
    SqliteWorld,
    World,
    ZookeeperWorld,
    eventually,
)

ZOOKEEPER = pytest.param("zookeeper", marks=[pytest.mark.zookeeper, pytest.mark.xdist_group("zookeeper")])
PATHS = ["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/deep"]
CALLS = 120


@pytest.fixture(params=["sqlite", "shared sqlite", ZOOKEEPER])
def world(request, tmp_path) -> World:
    if request.param == "sqlite":
        return SqliteWorld(tmp_path)
    if request.param == "shared sqlite":
        return SharedSqliteWorld(tmp_path)
    return ZookeeperWorld(request.getfixturevalue("zookeeper"))


def drawn(chance):
    """A call by name and arguments."""
    path, version = chance.choice(PATHS), chance.choice([ANY_VERSION, ANY_VERSION, 0, 1])
    value = str(chance.randrange(1000)).encode()
    match chance.randrange(8):
        case 0 | 1:
            return "create", (path, value, chance.random() < 0.2)
        case 2:
            return "put", (path, value, version)
        case 3:
            return "delete", (path, version)
        case 4:
            return "children", (path,)
        case 5:
            return "create_sequential", (path + "-", value)
        case _:
            return "multi", ([drawn_operation(chance) for _ in range(chance.randint(1, 4))],)


def drawn_operation(chance):
    path, version = chance.choice(PATHS), chance.choice([ANY_VERSION, 0, 1])
    return chance.choice(
        [
            Create(path, b"m", chance.random() < 0.2),
            Put(path, b"n", version),
            Delete(path, version),
            Check(path, max(version, 0)),
        ]
    )


async def outcome(store, name, arguments):
    try:
        result = await getattr(store, name)(*arguments)
    except StoreError as refusal:
        return type(refusal).__name__, refusal.path, refusal.operation_index
    return None if name == "create" else result


def without_numbers(result):
    """Numbers of sequential nodes rise, but not by one, and where they begin is each store's own affair."""
    if isinstance(result, str):
        return re.sub(r"-\d{10}", "-", result)
    return [without_numbers(each) for each in result] if isinstance(result, (list, tuple)) else result


def state(store):
    """What the watchers of each path see."""
    tree = store.tree
    return {path: (tree.nodes.get(path), sorted(tree.children.get(path, ()))) for path in PATHS}


async def picture(sessions):
    """The tree, with ids told by their rank."""
    nodes: dict[str, Node] = await sessions[0].subtree("/")
    created = sorted({node.created_id for node in nodes.values()})
    owners = [0, *(session.session_id for session in sessions)]
    return {
        path: (node.value, node.version, created.index(node.created_id), owners.index(node.owner))
        for path, node in nodes.items()
        if "-" not in path
    }


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_every_store_answers_as_the_one_in_memory_does(world, seed):
    several = 1 if isinstance(world, SqliteWorld) else 2
    chance = random.Random(seed)

    async def story(real, model):
        heard: dict[str, int] = dict.fromkeys(PATHS, 0)
        for path in PATHS:
            real[0].watch(path, lambda at, event: heard.__setitem__(at, heard[at] + 1))
        await real[0].get("/")  # what changes after this read is told
        for number in range(CALLS):
            who, (name, arguments) = chance.randrange(several), drawn(chance)
            before, heard_before = state(model[0]), dict(heard)
            expected = await outcome(model[who], name, arguments)
            found = await outcome(real[who], name, arguments)
            assert without_numbers(found) == without_numbers(expected), f"call {number}: {name}{arguments}"
            after = state(model[0])
            touched = [path for path in PATHS if after[path] != before[path]]
            await eventually(
                lambda touched=touched, then=heard_before: all(heard[path] > then[path] for path in touched),
                f"told of {touched} after {name}{arguments}",
            )
        assert await picture(real) == await picture(model)

    async def main(real=(), model=()):
        if len(real) == several:
            await story(real, model)
            return
        async with world.store() as one, memory.store() as other:
            await main((*real, one), (*model, other))

    memory = MemoryWorld()
    try:
        asyncio.run(main())
    finally:
        world.close()
