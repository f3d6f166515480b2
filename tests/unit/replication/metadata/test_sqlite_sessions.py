"""Sessions and the log of changes in an SQLite file."""

from __future__ import annotations

import sqlite3

import pytest

from replication.metadata import sqlite_sessions, sqlite_tree
from replication.metadata.store import Create, WatchEvent


@pytest.fixture
def connection():
    made = sqlite3.connect(":memory:", isolation_level=None)
    sqlite_tree.make_tables(made, sqlite_sessions.SCHEMA, sqlite_tree.FORMAT_SHARED)
    yield made
    made.close()


def test_a_session_takes_its_ephemeral_nodes_along_and_logs_it(connection):
    first = sqlite_sessions.begin(connection, "a", 1000)
    second = sqlite_sessions.begin(connection, "b", 2000)
    assert sqlite_sessions.sessions(connection) == [first, second]
    assert second.id > first.id
    sqlite_tree.apply(connection, [Create("/mine", b"", True), Create("/kept", b"")], first.id)
    sqlite_tree.apply(connection, [Create("/theirs", b"", True)], second.id)
    sqlite_sessions.end(connection, first.id)
    assert list(sqlite_tree.subtree(connection, "/")) == ["/kept", "/theirs"]
    assert sqlite_sessions.changes_after(connection, 0) == (
        [("/mine", WatchEvent.DELETED), ("/", WatchEvent.CHILDREN)],
        2,
    )
    assert not sqlite_sessions.exists(connection, first.id)
    assert sqlite_sessions.exists(connection, second.id)
    sqlite_sessions.end(connection, first.id)
    assert sqlite_sessions.last_change(connection) == 2


def test_the_next_session_of_an_owner_ends_the_one_before(connection):
    before = sqlite_sessions.begin(connection, "a", 1000)
    sqlite_tree.apply(connection, [Create("/mine", b"", True)], before.id)
    after = sqlite_sessions.begin(connection, "a", 1000)
    assert sqlite_sessions.sessions(connection) == [after]
    assert list(sqlite_tree.subtree(connection, "/")) == []


def test_the_log_keeps_the_newest_and_says_when_it_begins_too_late(connection, monkeypatch):
    monkeypatch.setattr(sqlite_sessions, "CHANGES_KEPT", 3)
    for number in range(5):
        sqlite_sessions.log_changes(connection, [(f"/{number}", WatchEvent.CREATED)])
    assert sqlite_sessions.changes_after(connection, 5) == ([], 5)
    newest = [(f"/{number}", WatchEvent.CREATED) for number in (2, 3, 4)]
    assert sqlite_sessions.changes_after(connection, 2) == (newest, 5)
    assert sqlite_sessions.changes_after(connection, 1) == (None, 5)
