"""Several processes in one SQLite file: leases, deaths, pauses, locks, and what each hears of the others."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from replication.metadata import shared_sqlite_session, sqlite_sessions, sqlite_tree
from replication.metadata.notify import events_of
from replication.metadata.shared_sqlite_session import SharedSqliteSession
from replication.metadata.shared_sqlite_store import SharedSqliteStore
from replication.metadata.sqlite_store import SqliteStore
from replication.metadata.store import (
    BadVersion,
    Create,
    NodeExists,
    Put,
    SessionEvent,
    StoreFailed,
    WatchEvent,
)
from runtime.blocking import ThreadBlocking
from runtime.os_files import OsFileSystem
from tests.contract.metadata_worlds import LIMIT_S, Heard, eventually
from tests.support.store_peer import StorePeer

TIMEOUT_MS = 2_000
LONG_MS = 10_000  # of those whom nobody takes for dead, and who look for the dead in a part of that time
LONGER_MS = 40_000  # of those who look at each other


@pytest.fixture
def path(tmp_path):
    return tmp_path / "metadata.sqlite"


def run(path, story, owner="test", timeout_ms=LONG_MS):
    async def main():
        store = SharedSqliteStore(asyncio.get_running_loop(), OsFileSystem(), str(path), owner, timeout_ms)
        await store.open()
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(main())


def test_two_processes_see_one_tree_and_hear_of_each_other(path):
    async def story(store):
        heard = Heard()
        store.watch("/theirs", heard.watcher)
        with StorePeer(path, "peer", LONGER_MS) as peer:
            created = await asyncio.to_thread(peer.call, "create", "/theirs", "x")
            await heard.equals([("/theirs", WatchEvent.CREATED)])
            assert await store.get("/theirs") == (b"x", 0, created, 0)
            await store.create("/watched", b"mine")
            await store.put("/watched", b"still mine")
            assert peer.call("get", "/watched")[:2] == ["still mine", 1]
            assert peer.call("put", "/watched", "yours", 0) == "BadVersion"
            told = ["connected", "/watched created", "/watched changed"]
            await eventually(lambda: peer.call("get", "/watched") and peer.events == told, "the peer told")

    run(path, story, timeout_ms=LONGER_MS)


def test_the_session_of_a_killed_process_ends_after_its_time_out_for_those_who_are_left(path):
    async def story(store):
        heard = Heard()
        with StorePeer(path, "peer", TIMEOUT_MS) as peer:
            store.watch("/me", heard.watcher)
            peer.call("create", "/me", "x", True)
            assert (await store.get("/me")).owner == peer.session_id
            await heard.equals([("/me", WatchEvent.CREATED)])
            await eventually(lambda: store.contact_age_ms() < 500, "contact")
            peer.kill()
            await heard.equals([("/me", WatchEvent.CREATED), ("/me", WatchEvent.DELETED)])
            assert await store.get("/me") is None
            assert await store.create("/me", b"", ephemeral=True) > 0

    run(path, story)


def test_a_paused_process_is_fenced_and_told_when_it_goes_on(path):
    async def story(store):
        heard = Heard()
        with StorePeer(path, "peer", TIMEOUT_MS) as peer:
            await store.create("/stays", b"x")
            store.watch("/me", heard.watcher)
            peer.call("create", "/me", "x", True)
            peer.pause()
            await heard.until(lambda told: told[-1:] == [("/me", WatchEvent.DELETED)], "told of the end")
            peer.send("put", "/stays", "from the dead")
            peer.resume()
            assert await asyncio.to_thread(peer.receive) == "SessionExpired"
            assert peer.call("get", "/stays") == "SessionExpired"
            assert peer.events == ["connected", "expired"]
            assert (await store.get("/stays")).value == b"x"

    run(path, story)


def test_a_process_that_is_started_again_need_not_wait_for_the_session_it_had(path):
    with StorePeer(path, "peer", 600_000) as peer:
        peer.call("create", "/me", "x", True)
        peer.kill()

    async def story(store):
        assert await store.get("/me") is None
        await store.create("/me", b"", ephemeral=True)

    run(path, story, owner="peer")


def test_sessions_that_everybody_left_behind_end_after_their_time_out(path):
    with StorePeer(path, "peer", TIMEOUT_MS) as peer:
        peer.call("create", "/me", "x", True)
        peer.kill()

    async def story(store):
        heard = Heard()
        assert await store.get("/me") is not None
        store.watch("/me", heard.watcher)
        await heard.equals([("/me", WatchEvent.DELETED)])

    run(path, story)


def test_nobody_is_taken_for_dead_because_the_file_was_locked_for_long(path):
    async def story(store):
        with StorePeer(path, "peer", TIMEOUT_MS) as peer:
            peer.call("create", "/me", "x", True)
            locker = sqlite3.connect(path, isolation_level=None)
            locker.execute("BEGIN EXCLUSIVE")
            asked = asyncio.ensure_future(store.create("/a", b""))
            await eventually(lambda: store.contact_age_ms() > 2 * TIMEOUT_MS, "no contact for long")
            assert not asked.done()
            locker.execute("COMMIT")
            locker.close()
            await asked
            assert (await store.get("/me")).owner == peer.session_id
            assert peer.call("get", "/me")[0] == "x"
            await eventually(lambda: store.contact_age_ms() < TIMEOUT_MS, "contact again")

    run(path, story)


def test_a_file_that_stays_locked_fails_the_call_and_not_the_session(path, monkeypatch):
    monkeypatch.setattr(shared_sqlite_session, "LOCKED_MAX_S", 0.2)

    async def story(store):
        locker = sqlite3.connect(path, isolation_level=None)
        locker.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreFailed, match="locked"):
            await store.create("/a", b"")
        locker.execute("COMMIT")
        locker.close()
        await store.create("/a", b"")

    run(path, story)


def test_writes_that_come_together_are_refused_one_by_one(path):
    async def story(store):
        await store.create("/n", b"0")
        heard = Heard()
        store.watch("/n", heard.watcher)
        outcomes = await asyncio.gather(
            store.multi([Create("/a", b""), Put("/n", b"1", 0)]),
            store.multi([Create("/b", b""), Put("/n", b"lost", 0)]),
            store.create("/a", b""),
            store.put("/n", b"2", 1),
            return_exceptions=True,
        )
        assert outcomes[0] == [0, 1]
        assert isinstance(outcomes[1], BadVersion)
        assert outcomes[1].operation_index == 1
        assert isinstance(outcomes[2], NodeExists)
        assert outcomes[3] == 2
        assert await store.children("/") == ["a", "n"]
        assert [event for _, event in heard.events] == [WatchEvent.CHANGED] * 2

    run(path, story)


def test_a_process_that_missed_too_many_changes_looks_at_everything_it_watches(path, monkeypatch):
    monkeypatch.setattr(sqlite_sessions, "CHANGES_KEPT", 3)

    async def story(store):
        states, heard = Heard(), Heard()
        store.on_session(states.note)
        await store.create("/a", b"")
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("DELETE FROM session")
        connection.close()
        await states.equals([SessionEvent.EXPIRED])
        async with asyncio.timeout(LIMIT_S):
            other = SharedSqliteStore(asyncio.get_running_loop(), OsFileSystem(), str(path), "other", LONG_MS)
            await other.open()
            for number in range(10):
                await other.create(f"/{number}", b"")
            await other.close()
        store.watch("/a", heard.watcher)
        await store.open()
        assert heard.events == [("/a", WatchEvent.CHANGED), ("/a", WatchEvent.CHILDREN)]

    run(path, story)


class StoppedTime(OsFileSystem):
    """Files whose time the test sets."""

    now_ms = 1

    def mtime_ms(self, path):
        return self.now_ms


def test_what_is_written_in_the_millisecond_of_a_look_is_seen_by_the_next_one(path):
    files = StoppedTime()

    told = []

    def session(owner, tell):
        made = SharedSqliteSession(files, str(path), owner, 600_000, tell, lambda: None)
        made.begin(None)
        return made

    def create(name):
        operations = [Create(name, b"")]

        def write(connection, session_id):
            return sqlite_tree.apply(connection, operations, session_id), events_of(operations)

        [(_, refusal)] = other.write([write])
        assert refusal is None

    mine = session("mine", lambda events, newest: told.extend(path for path, _ in events))
    other = session("other", lambda events, newest: None)
    try:
        for _ in range(3):
            mine.tick()
        create("/a")
        mine.tick()
        assert told == []  # the file seems to be as it was
        files.now_ms = 2
        mine.tick()
        assert "/a" in told
        create("/b")
        mine.tick()
        assert "/b" in told
    finally:
        mine.end()
        other.end()


def test_the_file_of_a_single_broker_is_taken_over_and_given_back(path):
    async def alone(check):
        blocking = ThreadBlocking(asyncio.get_running_loop())
        store = SqliteStore(str(path), blocking.submit)
        await store.open()
        await check(store)
        await store.close()
        blocking.close()

    async def first(store):
        await store.create("/kept", b"1")
        await store.put("/kept", b"2")

    async def shared(store):
        assert (await store.get("/kept"))[:2] == (b"2", 1)
        await store.put("/kept", b"3")
        await store.create("/gone", b"", ephemeral=True)

    async def last(store):
        assert (await store.get("/kept"))[:2] == (b"3", 2)
        assert await store.get("/gone") is None

    asyncio.run(alone(first))
    run(path, shared)
    asyncio.run(alone(last))


def test_a_file_that_a_single_broker_has_open_is_refused(path, monkeypatch):
    monkeypatch.setattr(shared_sqlite_session, "LOCKED_MAX_S", 0.1)

    async def main():
        blocking = ThreadBlocking(asyncio.get_running_loop())
        alone = SqliteStore(str(path), blocking.submit)
        await alone.open()
        store = SharedSqliteStore(asyncio.get_running_loop(), OsFileSystem(), str(path), "x", TIMEOUT_MS)
        with pytest.raises(StoreFailed, match="locked"):
            await store.open()
        await alone.close()
        blocking.close()

    asyncio.run(main())
