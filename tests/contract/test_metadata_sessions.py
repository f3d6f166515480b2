"""What every MetadataStore of a cluster promises to several sessions with one tree."""

from __future__ import annotations

import asyncio

import pytest

from replication.metadata.payloads import BrokerPayload
from replication.metadata.registration import Registration
from replication.metadata.store import (
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    Delete,
    NodeExists,
    Put,
    SessionEvent,
    SessionExpired,
    WatchEvent,
)
from tests.contract.metadata_worlds import Heard, MemoryWorld, SharedSqliteWorld, World, ZookeeperWorld, run

ZOOKEEPER = pytest.param("zookeeper", marks=[pytest.mark.zookeeper, pytest.mark.xdist_group("zookeeper")])
WITH_CONNECTIONS = ["memory", ZOOKEEPER]


@pytest.fixture(params=["memory", "shared sqlite", ZOOKEEPER])
def world(request, tmp_path) -> World:
    if request.param == "memory":
        return MemoryWorld()
    if request.param == "shared sqlite":
        return SharedSqliteWorld(tmp_path)
    return ZookeeperWorld(request.getfixturevalue("zookeeper"))


def test_all_sessions_see_one_tree_and_hear_of_each_others_changes(world):
    async def story(first, second):
        heard = Heard()
        second.watch("/a", heard.watcher)
        assert await second.get("/a") is None
        created = await first.create("/a", b"1")
        await heard.equals([("/a", WatchEvent.CREATED)])
        assert await second.get("/a") == (b"1", 0, created, 0)
        await first.put("/a", b"2")
        await heard.equals([("/a", WatchEvent.CREATED), ("/a", WatchEvent.CHANGED)])
        assert await second.put("/a", b"3", 1) == 2
        with pytest.raises(BadVersion):
            await first.put("/a", b"4", 1)

    run(world, story, stores=2)


def test_ids_of_creations_rise_over_all_sessions(world):
    async def story(first, second):
        ids = [await store.create(f"/{n}", b"") for n, store in enumerate((first, second, second, first))]
        assert ids == sorted(set(ids))

    run(world, story, stores=2)


def test_ephemeral_nodes_go_with_a_closed_session_and_others_hear_of_it(world):
    async def story(first, second):
        await first.multi([Create("/ids", b""), Create("/ids/1", b"", ephemeral=True)])
        await second.create("/ids/2", b"", ephemeral=True)
        assert first.session_id != second.session_id
        assert await second.children("/ids") == ["1", "2"]
        heard = Heard()
        second.watch("/ids", heard.watcher)
        second.watch("/ids/1", heard.watcher)
        assert await second.children("/ids") == ["1", "2"]
        await first.close()
        await heard.holds([("/ids/1", WatchEvent.DELETED), ("/ids", WatchEvent.CHILDREN)])
        assert await second.children("/ids") == ["2"]

    run(world, story, stores=2)


def test_a_session_that_expires_is_told_and_its_ephemeral_nodes_are_gone(world):
    async def story(first, second):
        states, heard = Heard(), Heard()
        first.on_session(states.note)
        await first.multi([Create("/ids", b""), Create("/ids/1", b"", ephemeral=True)])
        assert (await second.get("/ids/1")).owner == first.session_id
        second.watch("/ids/1", heard.watcher)
        assert (await second.get("/ids/1")).owner == first.session_id
        await world.expire(first)
        await states.until(lambda told: told[-1:] == [SessionEvent.EXPIRED], "told of the end")
        await heard.equals([("/ids/1", WatchEvent.DELETED)])
        assert await second.children("/ids") == []
        with pytest.raises(SessionExpired):
            await first.get("/ids")
        with pytest.raises(SessionExpired):
            await first.multi([Create("/ids/1", b"", ephemeral=True)])
        with pytest.raises(SessionExpired):
            await first.connected()

    run(world, story, stores=2)


def test_the_next_session_is_another_one_and_keeps_the_watches(world):
    async def story(first, second):
        states, heard = Heard(), Heard()
        first.on_session(states.note)
        for path in ("/changed", "/deleted", "/same"):
            await first.create(path, b"")
        for path in ("/changed", "/deleted", "/same", "/created"):
            first.watch(path, heard.watcher)
        assert await first.children("/") == ["changed", "deleted", "same"]
        old = first.session_id
        await world.expire(first)
        await states.until(lambda told: told[-1:] == [SessionEvent.EXPIRED], "told of the end")
        await second.multi([Put("/changed", b"x"), Delete("/deleted"), Create("/created", b"")])
        heard.events.clear()
        await first.open()
        assert first.session_id not in (old, 0)
        assert states.events[-1] == SessionEvent.CONNECTED
        await heard.holds(
            [
                ("/changed", WatchEvent.CHANGED),
                ("/deleted", WatchEvent.DELETED),
                ("/created", WatchEvent.CREATED),
            ]
        )
        heard.events.clear()
        await second.create("/same/child", b"")
        await heard.equals([("/same", WatchEvent.CHILDREN)])

    run(world, story, stores=2)


def test_a_fenced_write_says_whether_the_fence_or_the_write_was_refused(world):
    async def story(old, new):
        await new.multi([Create("/epoch", b"1"), Create("/state", b"a")])
        await old.multi([Check("/epoch", 0), Put("/state", b"b", 0)])
        await new.put("/state", b"c")
        with pytest.raises(BadVersion) as lost:
            await old.multi([Check("/epoch", 0), Put("/state", b"d", 1)])
        assert (lost.value.operation_index, lost.value.path) == (1, "/state")
        await new.put("/epoch", b"2", 0)
        with pytest.raises(BadVersion) as fenced:
            await old.multi([Check("/epoch", 0), Put("/state", b"d", 2)])
        assert (fenced.value.operation_index, fenced.value.path) == (0, "/epoch")
        assert (await new.get("/state"))[:2] == (b"c", 2)

    run(world, story, stores=2)


def test_of_many_who_create_the_same_node_one_wins(world):
    async def story(first, second):
        await first.create("/epoch", b"0")

        async def stand(store):
            node = await store.get("/epoch")
            try:
                await store.multi(
                    [Create("/controller", b"", ephemeral=True), Put("/epoch", b"1", node.version)]
                )
            except (NodeExists, BadVersion):
                return None
            return store

        outcomes = await asyncio.gather(*(stand(store) for store in (first, second) * 5))
        winners = [store for store in outcomes if store is not None]
        assert len(winners) == 1
        assert (await second.get("/controller")).owner == winners[0].session_id
        assert (await first.get("/epoch")).version == 1

    run(world, story, stores=2)


def test_numbers_of_sequential_nodes_rise_over_all_sessions(world):
    async def story(first, second):
        await first.create("/changes", b"")
        made = [await store.create_sequential("/changes/c_", b"") for store in (first, second, first, second)]
        assert made == sorted(set(made))
        assert await second.children("/changes") == [path[len("/changes/") :] for path in made]

    run(world, story, stores=2)


def test_changes_of_one_node_are_told_in_their_order(world):
    async def story(writer, reader):
        seen = []
        heard = Heard()

        async def read(path):
            node = await reader.get(path)
            seen.append((path, node and node.version))
            heard.note(None)

        reads = []
        paths = ["/a", "/b"]
        for path in paths:
            reader.watch(path, lambda path, event: reads.append(asyncio.ensure_future(read(path))))
        await reader.get("/a")
        for path in paths:
            await writer.create(path, b"")
        for _ in range(20):
            for path in paths:
                await writer.put(path, b"")
        await heard.until(lambda _: all((path, 20) in seen for path in paths), "the last versions read")
        await asyncio.gather(*reads)
        for path in paths:
            versions = [version for at, version in seen if at == path]
            assert versions == sorted(versions)

    run(world, story, stores=2)


def test_a_registration_waits_for_the_session_before_and_renews_itself(world):
    async def story(killed, restarted):
        payload = BrokerPayload({"PLAINTEXT": ("host", 9092)}, {"PLAINTEXT": "PLAINTEXT"}, None, 17)
        first = await Registration(killed, 1, lambda: payload).register()
        own = Registration(restarted, 1, lambda: payload)
        registering = asyncio.ensure_future(own.register())
        await world.expire(killed)
        second = await registering
        assert second > first
        node = await restarted.get("/brokers/ids/1")
        assert node[1:] == (1, second, restarted.session_id)
        states = Heard()
        restarted.on_session(states.note)
        await world.expire(restarted)
        await states.until(lambda told: told[-1:] == [SessionEvent.EXPIRED], "told of the end")
        assert await own.renew() > second
        assert (await restarted.get("/brokers/ids/1")).owner == restarted.session_id

    run(world, story, stores=2)


@pytest.mark.parametrize("world", WITH_CONNECTIONS, indirect=True)
def test_what_changed_while_the_connection_was_cut_is_told_when_it_is_back(world):
    async def story(cut, other):
        states, heard = Heard(), Heard()
        await cut.create("/topics", b"")
        await cut.create("/me", b"", ephemeral=True)
        cut.watch("/topics", heard.watcher)
        cut.watch("/topics/t", heard.watcher)
        cut.on_session(states.note)
        session = cut.session_id
        assert await cut.children("/topics") == []
        world.cut(cut)
        await states.equals([SessionEvent.SUSPENDED])
        with pytest.raises(ConnectionLost):
            await cut.get("/topics")
        with pytest.raises(ConnectionLost):
            await cut.create("/never", b"")
        await other.create("/topics/t", b"x")
        again = asyncio.ensure_future(cut.connected())
        await asyncio.sleep(0)
        assert not again.done()
        world.heal(cut)
        await asyncio.wait_for(again, 60)
        await states.equals([SessionEvent.SUSPENDED, SessionEvent.CONNECTED])
        await heard.holds([("/topics", WatchEvent.CHILDREN), ("/topics/t", WatchEvent.CREATED)])
        assert (await cut.get("/topics/t")).value == b"x"
        assert cut.session_id == session
        assert (await other.get("/me")).owner == session
        assert await other.get("/never") is None

    run(world, story, stores=2)
