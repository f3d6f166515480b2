"""The watchers and session listeners of a store that lives in this process.

Order of the calls: the order of the changes, and for one change the order in which the watchers were added.
A watcher may add and cancel watches while it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replication.metadata.store import (
    Cancel,
    Check,
    Create,
    Delete,
    Operation,
    Put,
    SessionEvent,
    Watcher,
    WatchEvent,
    parent_of,
)

Event = tuple[str, WatchEvent]


def events_of(operations: Sequence[Operation]) -> list[Event]:
    """What the watchers of a tree have to hear about an applied transaction, each event once."""
    events: dict[Event, None] = {}
    for operation in operations:
        match operation:
            case Create(path=path):
                events[path, WatchEvent.CREATED] = None
                events[parent_of(path), WatchEvent.CHILDREN] = None
            case Put(path=path):
                events[path, WatchEvent.CHANGED] = None
            case Delete(path=path):
                events[path, WatchEvent.DELETED] = None
                events[parent_of(path), WatchEvent.CHILDREN] = None
            case Check():
                continue
    return list(events)


class Listeners:
    """Keeps the watchers by path and the session listeners, and calls them."""

    def __init__(self) -> None:
        self._watchers: dict[str, dict[object, Watcher]] = {}
        self._sessions: dict[object, Callable[[SessionEvent], None]] = {}

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        key = object()
        self._watchers.setdefault(path, {})[key] = watcher

        def cancel() -> None:
            watchers = self._watchers.get(path, {})
            watchers.pop(key, None)
            if not watchers:
                self._watchers.pop(path, None)

        return cancel

    def is_watched(self, path: str) -> bool:
        return path in self._watchers

    def watched(self) -> list[str]:
        return list(self._watchers)

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        key = object()
        self._sessions[key] = listener

        def cancel() -> None:
            self._sessions.pop(key, None)

        return cancel

    def tell(self, events: Sequence[Event]) -> None:
        for path, event in events:
            for watcher in list(self._watchers.get(path, {}).values()):
                watcher(path, event)

    def tell_session(self, event: SessionEvent) -> None:
        for listener in list(self._sessions.values()):
            listener(event)
