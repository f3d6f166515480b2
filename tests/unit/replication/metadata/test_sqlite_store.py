"""What SQLite adds to the contract: crashes, locks, damaged and foreign files."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3

import pytest

from replication.metadata.sqlite_store import SqliteStore
from replication.metadata.sqlite_tree import FORMAT_SHARED
from replication.metadata.store import StoreFailed
from runtime.blocking import ThreadBlocking


def run(story):
    async def main():
        blocking = ThreadBlocking(asyncio.get_running_loop())
        try:
            await story(blocking.submit)
        finally:
            blocking.close()

    asyncio.run(main())


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    async def story(run_blocking):
        store = SqliteStore(str(tmp_path / "m.sqlite"), run_blocking)
        await store.open()
        await store.create("/a", b"1")
        await store.create("/me", b"", ephemeral=True)
        await store.put("/a", b"2")
        crashed = tmp_path / "crashed"
        crashed.mkdir()
        for file in sorted(tmp_path.glob("m.sqlite*")):
            shutil.copy(file, crashed)
        await store.close()
        again = SqliteStore(str(crashed / "m.sqlite"), run_blocking)
        await again.open()
        assert (await again.get("/a"))[:2] == (b"2", 1)
        assert await again.get("/me") is None
        await again.close()

    run(story)


def test_no_file_is_mapped_and_each_commit_is_synced(tmp_path):
    async def story(run_blocking):
        store = SqliteStore(str(tmp_path / "m.sqlite"), run_blocking)
        await store.open()
        await store.create("/a", b"1")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.sqlite", "m.sqlite-wal"]
        (level,) = store._connection.execute("PRAGMA synchronous").fetchone()
        assert level == 2
        await store.close()
        assert [path.name for path in tmp_path.iterdir()] == ["m.sqlite"]

    run(story)


def test_a_second_owner_is_refused(tmp_path):
    async def story(run_blocking):
        first = SqliteStore(str(tmp_path / "m.sqlite"), run_blocking)
        await first.open()
        with pytest.raises(StoreFailed, match="locked"):
            await SqliteStore(str(tmp_path / "m.sqlite"), run_blocking).open()
        await first.create("/a", b"")
        await first.close()

    run(story)


def test_a_file_of_a_later_version_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "m.sqlite")
    connection.execute(f"PRAGMA user_version = {FORMAT_SHARED + 1}")
    connection.close()

    async def story(run_blocking):
        with pytest.raises(StoreFailed, match="later version"):
            await SqliteStore(str(tmp_path / "m.sqlite"), run_blocking).open()

    run(story)


def test_a_file_that_is_no_database_is_refused_with_its_name(tmp_path):
    (tmp_path / "m.sqlite").write_bytes(b"these are not the nodes you are looking for" * 100)

    async def story(run_blocking):
        with pytest.raises(StoreFailed, match=r"m\.sqlite"):
            await SqliteStore(str(tmp_path / "m.sqlite"), run_blocking).open()

    run(story)
