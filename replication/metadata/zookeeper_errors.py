"""ZooKeeper's refusals, as kazoo raises them, in the words of the port."""

from __future__ import annotations

from typing import Final

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionExpiredError,
    SessionMovedError,
    ThrottledOpError,
)

from replication.metadata.store import (
    BadVersion,
    ConnectionLost,
    Create,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    ParentEphemeral,
    SessionExpired,
    StoreError,
    StoreFailed,
    parent_of,
)

_PLAIN: Final[tuple[tuple[type[Exception], type[StoreError]], ...]] = (
    (NoNodeError, NoNode),
    (NodeExistsError, NodeExists),
    (BadVersionError, BadVersion),
    (NotEmptyError, NotEmpty),
    (SessionExpiredError, SessionExpired),  # also what a client that was stopped raises
)
_UNKNOWN_OUTCOME: Final = (
    ConnectionLoss,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionMovedError,
    ThrottledOpError,
)


def translate(error: BaseException, path: str) -> StoreError:
    """The exception of the port for a refused call on the node at `path`."""
    if isinstance(error, _UNKNOWN_OUTCOME):
        return ConnectionLost(path)
    for theirs, ours in _PLAIN:
        if isinstance(error, theirs):
            return ours(path)
    return StoreFailed(path, f"ZooKeeper: {type(error).__name__} {error}".rstrip())


def translate_operation(error: BaseException, operation: Operation) -> StoreError:
    """The same for an operation: where a node can't be created, it may be its parent's fault."""
    if isinstance(operation, Create):
        parent = parent_of(operation.path)
        if isinstance(error, NoNodeError):
            return NoNode(parent, "the parent does not exist")
        if isinstance(error, NoChildrenForEphemeralsError):
            return ParentEphemeral(parent)
    return translate(error, operation.path)


def came_from_server(error: BaseException | None) -> bool:
    """Whether a call that ended so was answered by a server, and not by the loss of one."""
    return not isinstance(error, (ConnectionLoss, SessionExpiredError, OSError))
