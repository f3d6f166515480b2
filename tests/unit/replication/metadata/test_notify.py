"""Watchers and session listeners."""

from __future__ import annotations

from replication.metadata.notify import Listeners, events_of
from replication.metadata.store import Check, Create, Delete, Put, SessionEvent, WatchEvent


def test_each_event_of_a_transaction_is_told_once_in_order():
    operations = [
        Create("/a/b", b""),
        Put("/a/b", b"1"),
        Put("/a/b", b"2"),
        Create("/a/c", b""),
        Check("/a", 0),
    ]
    assert events_of([*operations, Delete("/a/c")]) == [
        ("/a/b", WatchEvent.CREATED),
        ("/a", WatchEvent.CHILDREN),
        ("/a/b", WatchEvent.CHANGED),
        ("/a/c", WatchEvent.CREATED),
        ("/a/c", WatchEvent.DELETED),
    ]


def test_watchers_are_called_in_the_order_in_which_they_came_and_let_go_of():
    listeners, heard = Listeners(), []
    cancel = listeners.watch("/a", lambda path, event: heard.append(1))
    listeners.watch("/a", lambda path, event: heard.append(2))
    listeners.on_session(heard.append)
    listeners.tell([("/a", WatchEvent.CHANGED), ("/b", WatchEvent.CHANGED)])
    cancel()
    cancel()
    listeners.tell([("/a", WatchEvent.CHANGED)])
    listeners.tell_session(SessionEvent.SUSPENDED)
    assert heard == [1, 2, 2, SessionEvent.SUSPENDED]
