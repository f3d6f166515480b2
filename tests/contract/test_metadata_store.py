"""One suite for every MetadataStore: what the port promises to a single session."""

from __future__ import annotations

import asyncio

import pytest

from replication.metadata.store import (
    NO_SESSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    ParentEphemeral,
    Put,
    SessionEvent,
    SessionExpired,
    WatchEvent,
    ensure_path,
)
from tests.contract.metadata_worlds import (
    Heard,
    MemoryWorld,
    SharedSqliteWorld,
    SqliteWorld,
    World,
    ZookeeperWorld,
    run,
)

ZOOKEEPER = pytest.param("zookeeper", marks=[pytest.mark.zookeeper, pytest.mark.xdist_group("zookeeper")])


@pytest.fixture(params=["memory", "sqlite", "shared sqlite", ZOOKEEPER])
def world(request, tmp_path) -> World:
    if request.param == "memory":
        return MemoryWorld()
    if request.param == "sqlite":
        return SqliteWorld(tmp_path)
    if request.param == "shared sqlite":
        return SharedSqliteWorld(tmp_path)
    return ZookeeperWorld(request.getfixturevalue("zookeeper"))


def test_a_new_node_has_version_0_and_each_put_raises_it(world):
    async def story(store):
        await store.create("/a", b"one")
        assert (await store.get("/a"))[:2] == (b"one", 0)
        assert await store.put("/a", b"two") == 1
        assert await store.put("/a", b"three", 1) == 2
        assert (await store.get("/a"))[:2] == (b"three", 2)
        assert await store.get("/missing") is None

    run(world, story)


def test_created_id_stays_with_puts_and_rises_with_each_creation(world):
    async def story(store):
        first = await store.create("/a", b"")
        await store.put("/a", b"x")
        assert (await store.get("/a")).created_id == first
        second = await store.create("/b", b"")
        assert second > first
        await store.delete("/a")
        assert await store.create("/a", b"") > second

    run(world, story)


def test_refusals_change_nothing(world):
    async def story(store):
        await store.create("/a", b"1")
        await store.create("/a/b", b"2")
        with pytest.raises(NodeExists):
            await store.create("/a", b"other")
        with pytest.raises(NoNode):
            await store.create("/x/y", b"")
        with pytest.raises(BadVersion):
            await store.put("/a", b"other", 7)
        with pytest.raises(NoNode):
            await store.put("/x", b"")
        with pytest.raises(NotEmpty):
            await store.delete("/a")
        with pytest.raises(BadVersion):
            await store.delete("/a/b", 3)
        with pytest.raises(NoNode):
            await store.delete("/x")
        with pytest.raises(NoNode):
            await store.children("/x")
        assert {path: node[:2] for path, node in (await store.subtree("/")).items()} == {
            "/a": (b"1", 0),
            "/a/b": (b"2", 0),
        }

    run(world, story)


@pytest.mark.parametrize("path", ["a", "/a/", "//a", "/a/../b", "/./a", "/a\0b"])
def test_paths_that_are_none_are_refused(world, path):
    async def story(store):
        with pytest.raises(ValueError, match="not a path"):
            await store.create(path, b"")

    run(world, story)


def test_children_and_subtree_are_sorted_and_exact(world):
    async def story(store):
        for path in ("/t", "/t/b", "/t/a", "/t/a/x", "/t-other", "/t0", "/t/a-1"):
            await store.create(path, path.encode())
        assert await store.children("/") == ["t", "t-other", "t0"]
        assert await store.children("/t") == ["a", "a-1", "b"]
        assert await store.children("/t/b") == []
        assert list(await store.subtree("/t")) == ["/t/a", "/t/a-1", "/t/a/x", "/t/b"]
        assert await store.subtree("/nothing") == {}
        assert (await store.subtree("/t"))["/t/a/x"].value == b"/t/a/x"

    run(world, story)


def test_many_nodes_are_read_in_one_call_in_the_order_of_the_paths(world):
    async def story(store):
        await store.multi([Create("/t", b"t"), *(Create(f"/t/{n}", str(n).encode()) for n in range(500))])
        asked = [f"/t/{n}" for n in range(499, -1, -1)]
        nodes = await store.get_many([*asked[:250], "/none", "/t/0/none", *asked[250:], "/t"])
        assert list(nodes) == [*asked, "/t"]
        for path in asked[::50]:
            assert nodes[path] == await store.get(path)
        assert await store.get_many([]) == await store.get_many(["/none"]) == {}

    run(world, story)


def test_multi_applies_all_in_order_and_tells_the_versions(world):
    async def story(store):
        await store.create("/epoch", b"1")
        results = await store.multi(
            [
                Check("/epoch", 0),
                Create("/a", b""),
                Create("/a/b", b"x"),
                Put("/a/b", b"y", 0),
                Delete("/a/b", 1),
                Put("/epoch", b"2"),
            ]
        )
        assert results == [0, 0, 0, 1, -1, 1]
        assert await store.children("/a") == []
        assert await store.multi([]) == []

    run(world, story)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (Check("/epoch", 5), BadVersion),
        (Create("/a", b""), NodeExists),
        (Put("/nothing", b""), NoNode),
        (Delete("/epoch"), NotEmpty),
        (Create("/p/q/r", b""), NoNode),
    ],
)
def test_multi_that_fails_in_the_end_has_changed_nothing(world, bad, error):
    async def story(store):
        await store.create("/epoch", b"1")
        await store.create("/epoch/child", b"")
        await store.create("/old", b"kept")
        before = await store.subtree("/")
        heard = []
        store.watch("/old", lambda path, event: heard.append(event))
        with pytest.raises(error) as refused:
            await store.multi(
                [Create("/a", b"x"), Put("/epoch", b"2"), Put("/old", b"gone"), Delete("/old"), bad]
            )
        assert refused.value.operation_index == 4
        assert await store.subtree("/") == before
        assert heard == []

    run(world, story)


def test_what_was_written_is_there_in_the_next_session_but_for_ephemeral_nodes(world):
    async def main():
        async with world.store() as store:
            await store.create("/brokers", b"")
            await store.create("/brokers/1", b"me", ephemeral=True)
            await store.create("/kept", b"\x00\xff")
            await store.put("/kept", b"again")
            assert await store.children("/brokers") == ["1"]
            last = (await store.get("/kept")).created_id
        async with world.store() as store:
            assert await store.children("/brokers") == []
            assert (await store.get("/kept"))[:2] == (b"again", 1)
            assert await store.create("/brokers/1", b"me", ephemeral=True) > last

    asyncio.run(main())
    world.close()


def test_watchers_hear_of_changes_after_they_can_be_read_until_cancelled(world):
    async def story(store):
        heard = Heard()
        cancel = store.watch("/a", heard.watcher)
        store.watch("/", heard.watcher)
        expected = []
        for change, events in (
            (store.create("/a", b""), [("/a", WatchEvent.CREATED), ("/", WatchEvent.CHILDREN)]),
            (store.put("/a", b"x"), [("/a", WatchEvent.CHANGED)]),
            (store.create("/a/b", b""), [("/a", WatchEvent.CHILDREN)]),
            (store.delete("/a/b"), [("/a", WatchEvent.CHILDREN)]),
            (store.delete("/a"), [("/a", WatchEvent.DELETED), ("/", WatchEvent.CHILDREN)]),
        ):
            await change
            expected += events
            await heard.holds(expected)
        cancel()
        await store.create("/a", b"")
        await heard.holds([*expected, ("/", WatchEvent.CHILDREN)])

    run(world, story)


def test_what_a_watcher_reads_is_at_least_as_new_as_what_it_heard(world):
    async def story(store):
        heard, values = Heard(), []

        async def read(event):
            node = await store.get("/a")
            values.append(node and int(node.value))
            heard.note(event)

        reads = []
        store.watch("/a", lambda path, event: reads.append(asyncio.ensure_future(read(event))))
        await store.create("/a", b"0")
        for number in range(1, 30):
            await store.put("/a", str(number).encode())
        await heard.until(lambda _: 29 in values, "the last value read")
        await asyncio.gather(*reads)
        assert values == sorted(values)

    run(world, story)


def test_a_watcher_may_cancel_itself_and_add_others(world):
    async def story(store):
        heard = Heard()

        def first(path, event):
            cancel()
            store.watch("/a", lambda path, event: heard.note("second"))
            heard.note("first")

        cancel = store.watch("/a", first)
        await store.create("/a", b"")
        await heard.equals(["first"])
        await store.put("/a", b"")
        await heard.equals(["first", "second"])

    run(world, story)


def test_concurrent_calls_take_turns(world):
    async def story(store):
        await store.create("/n", b"0")

        async def count():
            while True:
                node = await store.get("/n")
                try:
                    await store.put("/n", str(int(node.value) + 1).encode(), node.version)
                except BadVersion:
                    continue
                return

        await asyncio.gather(*(count() for _ in range(20)))
        assert (await store.get("/n"))[:2] == (b"20", 20)

    run(world, story)


def test_a_closed_store_refuses_and_an_open_one_says_so(world):
    async def main():
        async with world.store() as store:
            events = []
            store.on_session(events.append)
            await ensure_path(store, "/a/b/c", b"x")
            await ensure_path(store, "/a/b/c", b"y")
            assert (await store.get("/a/b/c")).value == b"x"
            await store.close()
            with pytest.raises(SessionExpired):
                await store.get("/a")
            with pytest.raises(SessionExpired):
                await store.multi([Create("/z", b"")])
            await store.open()
            assert events == [SessionEvent.CONNECTED]
            assert (await store.get("/a/b/c")).value == b"x"

    asyncio.run(main())
    world.close()


def test_ephemeral_nodes_name_their_session_and_have_no_children(world):
    async def story(store):
        assert store.session_id != NO_SESSION
        await store.multi([Create("/stays", b""), Create("/goes", b"", ephemeral=True)])
        assert (await store.get("/stays")).owner == NO_SESSION
        assert (await store.get("/goes")).owner == store.session_id
        await store.put("/goes", b"still mine")
        assert (await store.subtree("/"))["/goes"].owner == store.session_id
        with pytest.raises(ParentEphemeral):
            await store.create("/goes/child", b"")
        with pytest.raises(ParentEphemeral) as refused:
            await store.multi([Put("/stays", b"x"), Create("/goes/child", b"")])
        assert refused.value.operation_index == 1
        assert (await store.get("/stays")).value == b""

    run(world, story)


def test_sequential_nodes_get_rising_numbers_of_ten_digits(world):
    async def story(store):
        await store.create("/changes", b"")
        first = await store.create_sequential("/changes/change_", b"1")
        assert first == "/changes/change_0000000000"
        second = await store.create_sequential("/changes/change_", b"2")
        assert second == "/changes/change_0000000001"
        await store.delete(second)
        third = await store.create_sequential("/changes/other_", b"3")
        assert third.startswith("/changes/other_")
        assert third[-10:] > second[-10:]
        assert (await store.get(third)).value == b"3"
        with pytest.raises(NoNode):
            await store.create_sequential("/nowhere/change_", b"")

    run(world, story)


def test_a_store_that_is_opened_twice_at_once_has_one_session(world):
    async def main():
        async with world.store() as store:
            await store.close()
            await asyncio.gather(store.open(), store.open())
            session = store.session_id
            await store.create("/me", b"", ephemeral=True)
            await store.open()
            assert store.session_id == session
            assert (await store.get("/me")).owner == session
        async with world.store() as after:
            assert await after.get("/me") is None

    asyncio.run(main())
    world.close()


def test_the_states_of_a_session_that_just_goes_well(world):
    async def main():
        async with world.store() as store:
            assert 0 <= store.contact_age_ms() < store.session_timeout_ms
            await store.connected()
            await store.close()
            assert store.session_id == NO_SESSION
            with pytest.raises(SessionExpired):
                await store.connected()
            await store.close()

    asyncio.run(main())
    world.close()


def test_a_large_tree_is_read_in_one_call(world):
    async def story(store):
        operations = [Create("/t", b"")]
        operations += [Create(f"/t/{n:05}", b"v" * 50) for n in range(3000)]
        await store.multi(operations)
        nodes = await store.subtree("/t")
        assert list(nodes) == [f"/t/{n:05}" for n in range(3000)]

    run(world, story)
