"""One suite for every MetadataStore: what the port promises, on memory and on SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.sqlite_store import SqliteStore
from replication.metadata.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataStore,
    NodeExists,
    NoNode,
    NotEmpty,
    Put,
    SessionEvent,
    SessionExpired,
    WatchEvent,
    ensure_path,
)
from runtime.blocking import ThreadBlocking

OpenStore = Callable[[], AbstractAsyncContextManager[MetadataStore]]
"""Opens one session with the same tree each time; only one session at a time may be open."""


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request, tmp_path) -> OpenStore:
    tree = MemoryTree()

    @asynccontextmanager
    async def session() -> AsyncIterator[MetadataStore]:
        blocking = ThreadBlocking(asyncio.get_running_loop())
        store: MetadataStore
        if request.param == "memory":
            store = MemoryStore(tree)
        else:
            store = SqliteStore(str(tmp_path / "metadata.sqlite"), blocking.submit)
        await store.open()
        try:
            yield store
        finally:
            await store.close()
            blocking.close()

    return session


def run(open_store: OpenStore, story: Callable[[MetadataStore], Awaitable[None]]) -> None:
    async def main() -> None:
        async with open_store() as store:
            await story(store)

    asyncio.run(main())


def test_a_new_node_has_version_0_and_each_put_raises_it(open_store):
    async def story(store):
        await store.create("/a", b"one")
        assert (await store.get("/a"))[:2] == (b"one", 0)
        assert await store.put("/a", b"two") == 1
        assert await store.put("/a", b"three", 1) == 2
        assert (await store.get("/a"))[:2] == (b"three", 2)
        assert await store.get("/missing") is None

    run(open_store, story)


def test_created_id_stays_with_puts_and_rises_with_each_creation(open_store):
    async def story(store):
        first = await store.create("/a", b"")
        await store.put("/a", b"x")
        assert (await store.get("/a")).created_id == first
        second = await store.create("/b", b"")
        assert second > first
        await store.delete("/a")
        assert await store.create("/a", b"") > second

    run(open_store, story)


def test_refusals_change_nothing(open_store):
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

    run(open_store, story)


@pytest.mark.parametrize("path", ["a", "/a/", "//a", "/a/../b", "/./a", "/a\0b"])
def test_paths_that_are_none_are_refused(open_store, path):
    async def story(store):
        with pytest.raises(ValueError, match="not a path"):
            await store.create(path, b"")

    run(open_store, story)


def test_children_and_subtree_are_sorted_and_exact(open_store):
    async def story(store):
        for path in ("/t", "/t/b", "/t/a", "/t/a/x", "/t-other", "/t0", "/t/a-1"):
            await store.create(path, path.encode())
        assert await store.children("/") == ["t", "t-other", "t0"]
        assert await store.children("/t") == ["a", "a-1", "b"]
        assert await store.children("/t/b") == []
        assert list(await store.subtree("/t")) == ["/t/a", "/t/a-1", "/t/a/x", "/t/b"]
        assert await store.subtree("/nothing") == {}
        assert (await store.subtree("/t"))["/t/a/x"].value == b"/t/a/x"

    run(open_store, story)


def test_multi_applies_all_in_order_and_tells_the_versions(open_store):
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

    run(open_store, story)


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
def test_multi_that_fails_in_the_end_has_changed_nothing(open_store, bad, error):
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

    run(open_store, story)


def test_what_was_written_is_there_in_the_next_session_but_for_ephemeral_nodes(open_store):
    async def main():
        async with open_store() as store:
            await store.create("/brokers", b"")
            await store.create("/brokers/1", b"me", ephemeral=True)
            await store.create("/kept", b"\x00\xff")
            await store.put("/kept", b"again")
            assert await store.children("/brokers") == ["1"]
            last = (await store.get("/kept")).created_id
        async with open_store() as store:
            assert await store.children("/brokers") == []
            assert (await store.get("/kept"))[:2] == (b"again", 1)
            assert await store.create("/brokers/1", b"me", ephemeral=True) > last

    asyncio.run(main())


def test_watchers_hear_of_changes_after_they_can_be_read_until_cancelled(open_store):
    async def story(store):
        heard = []
        cancel = store.watch("/a", lambda path, event: heard.append((path, event)))
        store.watch("/", lambda path, event: heard.append((path, event)))
        await store.create("/a", b"")
        await store.put("/a", b"x")
        await store.create("/a/b", b"")
        await store.delete("/a/b")
        await store.delete("/a")
        assert heard == [
            ("/a", WatchEvent.CREATED),
            ("/", WatchEvent.CHILDREN),
            ("/a", WatchEvent.CHANGED),
            ("/a", WatchEvent.CHILDREN),
            ("/a", WatchEvent.CHILDREN),
            ("/a", WatchEvent.DELETED),
            ("/", WatchEvent.CHILDREN),
        ]
        cancel()
        heard.clear()
        await store.create("/a", b"")
        assert heard == [("/", WatchEvent.CHILDREN)]

    run(open_store, story)


def test_a_watcher_may_cancel_itself_and_add_others(open_store):
    async def story(store):
        heard = []

        def first(path, event):
            cancel()
            store.watch("/a", lambda path, event: heard.append("second"))
            heard.append("first")

        cancel = store.watch("/a", first)
        await store.create("/a", b"")
        await store.put("/a", b"")
        assert heard == ["first", "second"]

    run(open_store, story)


def test_concurrent_calls_take_turns(open_store):
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

    run(open_store, story)


def test_a_closed_store_refuses_and_an_open_one_says_so(open_store):
    async def main():
        async with open_store() as store:
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


def test_a_large_tree_is_read_in_one_call(open_store):
    async def story(store):
        operations = [Create("/t", b"")]
        operations += [Create(f"/t/{n:05}", b"v" * 50) for n in range(3000)]
        await store.multi(operations)
        nodes = await store.subtree("/t")
        assert list(nodes) == [f"/t/{n:05}" for n in range(3000)]

    run(open_store, story)
