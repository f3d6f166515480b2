"""The port behind which cluster metadata is kept: a small tree of versioned nodes, as ZooKeeper has it.

One node has a value (bytes), a version that rises by one with each put (a new node has version 0), and the id
of the transaction that created it (ZooKeeper's czxid, which Kafka uses as the broker epoch). A node can be
created only under an existing parent and deleted only without children. Ephemeral nodes vanish with the
session that made them, and may have no children.

Rules that every implementation keeps (tests/contract/test_metadata_store.py runs on each of them):
- A change is durable before the call that made it returns.
- `multi` applies all of its operations or none.
- Watchers are called on the event loop, after the change can be read; those of one path in the order of its
  changes. A watch stays until it is cancelled. Several changes in a row may be told as one; one that came
  shortly before the watch may be told, too.
- Failures are the exceptions below; a call that fails has changed nothing, except `ConnectionLost`, after
  which the change may or may not have happened.
- Session events: CONNECTED when `open` has succeeded and after each SUSPENDED that ended well. While the
  session is suspended, calls raise `ConnectionLost`. After it every watched path is compared, ahead of the
  reads of those who hear CONNECTED, and what changed in the gap is told. EXPIRED is the end: calls raise
  `SessionExpired` until `open` is called again, which starts another session; watches stay, and hear of the
  time between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

ANY_VERSION = -1
"""Given as the expected version: put or delete whatever version the node has."""


NO_SESSION = 0
"""The id of no session: of a node that is not ephemeral, of a store that is not open."""


class Node(NamedTuple):
    """What is stored at a path. `created_id` is the id of the transaction that created the node, `owner` that
    of the session with which an ephemeral node goes.
    """

    value: bytes
    version: int
    created_id: int
    owner: int = NO_SESSION


class StoreError(Exception):
    """An expected refusal of the store. `path` is the node it is about."""

    retriable = False

    def __init__(self, path: str, reason: str = "") -> None:
        super().__init__(f"{path}: {reason or type(self).__name__}")
        self.path = path
        self.operation_index = 0


class NoNode(StoreError):
    """The node, or the parent of a node to create, does not exist."""


class NodeExists(StoreError):
    """The node to create exists."""


class BadVersion(StoreError):
    """The node has another version than the one expected: somebody else changed it."""


class NotEmpty(StoreError):
    """The node to delete has children."""


class ParentEphemeral(StoreError):
    """The parent of the node to create is ephemeral, and such nodes have no children."""


class StoreFailed(StoreError):
    """The store could not do it for a reason of its own (disk full, damaged file, no permission)."""


class SessionExpired(StoreError):
    """The session is over: its ephemeral nodes are gone and the store must be opened again."""


class ConnectionLost(StoreError):
    """No answer came: whether the change was applied is unknown."""

    retriable = True


@dataclass(slots=True, frozen=True)
class Create:
    """Create a node; its parent must exist."""

    path: str
    value: bytes
    ephemeral: bool = False


@dataclass(slots=True, frozen=True)
class Put:
    """Replace the value of a node that has `version` (or any version)."""

    path: str
    value: bytes
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class Delete:
    """Remove a node without children that has `version` (or any version)."""

    path: str
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class Check:
    """Change nothing; fail the whole transaction unless the node has exactly `version`."""

    path: str
    version: int


Operation = Create | Put | Delete | Check


class SessionEvent(Enum):
    """What may happen to the session behind an open store."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    EXPIRED = "expired"


class WatchEvent(Enum):
    """Why a watcher is called: the node itself, or the list of its children, changed."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


Watcher = Callable[[str, WatchEvent], None]
Cancel = Callable[[], None]


class MetadataStore(Protocol):
    """A session with the tree of metadata. All paths are absolute, without a trailing slash; the root is
    `/`.
    """

    @property
    def session_id(self) -> int:
        """The owner of ephemeral nodes that are created now; NO_SESSION when not open."""

    @property
    def session_timeout_ms(self) -> int:
        """After so long without contact the session ends and others see its ephemeral nodes vanish. What
        was asked for until the store is open, then what it has granted: a ZooKeeper has bounds of its own.
        """

    async def open(self) -> None:
        """Start a session. Raises ConnectionLost where the store is not reached in time, StoreFailed."""

    async def close(self) -> None:
        """End the session and remove its ephemeral nodes, as far as the store is reached."""

    async def connected(self) -> None:
        """Return as soon as the session is connected. Raises SessionExpired."""

    def contact_age_ms(self) -> int:
        """How long ago the store was asked what it has answered last; 0 where nothing stands between.

        More than `session_timeout_ms`: the others may take the session for dead, whatever this side knows.
        """

    async def get(self, path: str) -> Node | None:
        """The node at `path`, or None."""

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        """The nodes of those paths that exist, in the order of `paths`; not as of one moment."""

    async def children(self, path: str) -> list[str]:
        """The names (not paths) of the children, sorted. Raises NoNode."""

    async def subtree(self, path: str) -> dict[str, Node]:
        """Every node below `path` by its full path, sorted by path; empty where there is no such node.

        One call where a loader would need thousands. The nodes are read as of one moment if the store can do
        so.
        """

    async def create(self, path: str, value: bytes, ephemeral: bool = False) -> int:
        """Create a node and return its `created_id`. Raises NodeExists, NoNode (parent), ParentEphemeral."""

    async def create_sequential(self, prefix: str, value: bytes) -> str:
        """Create a node with a number of ten digits after `prefix`, higher than earlier ones under the same
        parent; return its path. Raises NoNode (parent), ParentEphemeral.
        """

    async def put(self, path: str, value: bytes, version: int = ANY_VERSION) -> int:
        """Replace the value and return the new version. Raises NoNode, BadVersion."""

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove the node. Raises NoNode, BadVersion, NotEmpty."""

    async def multi(self, operations: Sequence[Operation]) -> list[int]:
        """Apply all operations or none. Returns for each one the version that its node has afterwards (-1 for
        a deletion). Raises the error of the first refused operation, with its position in
        `operation_index`.
        """

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        """Call `watcher(path, event)` after each change of the node or its list of children, until cancelled.

        Watch first and read then: what changes after a read that was begun after this call is told.
        """

    def on_session(self, listener: Callable[[SessionEvent], None]) -> Cancel:
        """Call `listener(event)` when the session changes its state, until cancelled."""


def parent_of(path: str) -> str:
    """The path of the parent; the root is its own parent."""
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def check_path(path: str) -> None:
    """Refuse what ZooKeeper refuses: relative paths, empty, `.` and `..` parts, NUL. Raises ValueError."""
    parts = path.split("/")
    if path == "/":
        return
    if parts[0] != "" or any(part in ("", ".", "..") or "\0" in part for part in parts[1:]):
        raise ValueError(f"not a path of the metadata tree: {path!r}")


async def ensure_path(store: MetadataStore, path: str, value: bytes = b"") -> None:
    """Create the node and its missing parents; what exists stays as it is."""
    if path == "/" or await store.get(path) is not None:
        return
    await ensure_path(store, parent_of(path))
    try:
        await store.create(path, value)
    except NodeExists:
        return
