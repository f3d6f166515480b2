"""Watches that stay, made of ZooKeeper's, which fire once and are gone with the connection.

For each watched path the last seen state is kept: the transactions that created the node, changed its value
and changed the list of its children. Whenever a watch has fired or the connection is back, the state is read
anew with a new watch, and the difference is what the watchers hear. So nothing is missed between two watches
or during a gap, several changes may be told as one, and a node that was deleted and made anew is told as
DELETED and CREATED.

One read of a path is out at a time, so that its differences are told in order; a watch that fires meanwhile
leads to another read. A path that is not there yet has no watch on its children; it gets one when it appears.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import ConnectionLoss, NoNodeError, SessionExpiredError
from kazoo.protocol.states import EventType, ZnodeStat

from replication.metadata.notify import Event, Listeners
from replication.metadata.store import WatchEvent

if TYPE_CHECKING:
    import asyncio

    from replication.metadata.zookeeper_session import ZookeeperSession

log = logging.getLogger("ottla.zookeeper")


@dataclass(slots=True, eq=False)
class _Watched:
    """One path. `is_known` is false until it was read for the first time; what is found then is not news."""

    path: str
    is_known: bool = False
    stat: ZnodeStat | None = None
    children_changed_in: int = -1
    node_stale: bool = True
    children_stale: bool = True
    reading: asyncio.Future[Any] | None = field(default=None)


class Watches:
    """Keeps the watches of the paths that `listeners` are interested in."""

    def __init__(self, listeners: Listeners, full_path: Callable[[str], str]) -> None:
        self._listeners = listeners
        self._full_path = full_path
        self._watched: dict[str, _Watched] = {}
        self._by_full_path: dict[str, _Watched] = {}
        self._session: ZookeeperSession | None = None

    def add(self, path: str) -> None:
        """Somebody watches the path. What the store is asked after this call is read after the first look."""
        if path not in self._watched:
            entry = self._watched[path] = self._by_full_path[self._full_path(path)] = _Watched(path)
            self._look(entry)

    def drop(self, path: str) -> None:
        """Nobody does any more."""
        if self._watched.pop(path, None) is not None:
            del self._by_full_path[self._full_path(path)]

    def connected(self, session: ZookeeperSession) -> None:
        """A connection is there, of the session before or of a new one: all watches are gone."""
        self._session = session
        for entry in list(self._watched.values()):
            entry.node_stale = entry.children_stale = True
            self._look(entry)

    def fired(self, event_type: str, full_path: str) -> None:
        """ZooKeeper says that something has changed; what, the next read tells."""
        entry = self._by_full_path.get(full_path)
        if entry is not None:
            entry.node_stale |= event_type != EventType.CHILD
            entry.children_stale |= event_type in (EventType.CHILD, EventType.DELETED)
            self._look(entry)

    def _look(self, entry: _Watched) -> None:
        """Read what is stale, the node first, unless a read is out."""
        session = self._session
        if entry.reading is not None or session is None or not session.is_connected:
            return
        path, watcher = self._full_path(entry.path), session.watch_fired
        events_in: Callable[[_Watched, Any], list[WatchEvent]]
        if entry.node_stale:
            entry.node_stale, events_in = False, _node_events
            entry.reading = session.call(lambda client: client.exists_async(path, watch=watcher))
        elif entry.children_stale and entry.stat is not None:
            entry.children_stale, events_in = False, _children_events
            entry.reading = session.call(
                lambda client: client.get_children_async(path, watch=watcher, include_data=True)
            )
        else:
            return
        entry.reading.add_done_callback(lambda done: self._read(entry, done, events_in))

    def _read(
        self,
        entry: _Watched,
        done: asyncio.Future[Any],
        events_in: Callable[[_Watched, Any], list[WatchEvent]],
    ) -> None:
        entry.reading = None
        error = done.exception()
        if self._watched.get(entry.path) is not entry:
            return
        if error is None:
            events: list[Event] = [(entry.path, event) for event in events_in(entry, done.result())]
            self._listeners.tell(events)
        elif isinstance(error, NoNodeError):
            entry.children_stale = True
            if not entry.node_stale:
                return  # the node has just gone: its own watch will say so, and another read would not help
        elif not isinstance(error, (ConnectionLoss, SessionExpiredError)):
            log.error("The metadata node %s cannot be watched: %r", entry.path, error)
            return
        self._look(entry)


def _node_events(entry: _Watched, stat: ZnodeStat | None) -> list[WatchEvent]:
    before, was_known = entry.stat, entry.is_known
    entry.stat, entry.is_known = stat, True
    if stat is None:
        entry.children_stale = True
        return [WatchEvent.DELETED] if before is not None else []
    if before is not None and before.czxid == stat.czxid:
        return [WatchEvent.CHANGED] if before.mzxid != stat.mzxid else []
    # A new node begins without children; a node seen for the first time, with those it has.
    entry.children_changed_in = stat.czxid if was_known else stat.pzxid
    entry.children_stale = True
    if not was_known:
        return []
    return [WatchEvent.CREATED] if before is None else [WatchEvent.DELETED, WatchEvent.CREATED]


def _children_events(entry: _Watched, answer: tuple[list[str], ZnodeStat]) -> list[WatchEvent]:
    _, stat = answer
    before, entry.children_changed_in = entry.children_changed_in, stat.pzxid
    return [WatchEvent.CHILDREN] if before != stat.pzxid else []
