"""A transaction of the port as one of ZooKeeper's, and what its answer means.

kazoo raises nothing for a refused transaction; it returns a list: RolledBackError for each operation before
the one refused, that one's own exception, RuntimeInconsistency for each one after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import RolledBackError, RuntimeInconsistency

from replication.metadata.store import Check, Create, Delete, Operation, Put, StoreFailed
from replication.metadata.zookeeper_errors import translate_operation

if TYPE_CHECKING:
    from kazoo.client import TransactionRequest
    from kazoo.security import ACL


def add_operations(
    transaction: TransactionRequest,
    operations: Sequence[Operation],
    full_path: Callable[[str], str],
    acl_of: Callable[[str], list[ACL]],
) -> None:
    """Fill a transaction of kazoo's."""
    for operation in operations:
        path = full_path(operation.path)
        match operation:
            case Create(value=value, ephemeral=ephemeral):
                transaction.create(path, value, acl=acl_of(operation.path), ephemeral=ephemeral)
            case Put(value=value, version=version):
                transaction.set_data(path, value, version)
            case Delete(version=version):
                transaction.delete(path, version)
            case Check(version=version):
                transaction.check(path, version)


def versions_after(operations: Sequence[Operation], results: Sequence[Any]) -> list[int]:
    """The version of each operation's node afterwards. Raises the StoreError of the one that was refused."""
    for index, (operation, result) in enumerate(zip(operations, results, strict=False)):
        if isinstance(result, Exception) and not isinstance(result, (RolledBackError, RuntimeInconsistency)):
            refusal = translate_operation(result, operation)
            refusal.operation_index = index
            raise refusal
    failed = next((result for result in results if isinstance(result, Exception)), None)
    if failed is not None or len(results) != len(operations):
        raise StoreFailed(operations[0].path, f"ZooKeeper gave no reason: {list(results)!r}")
    return [_version_after(operation, result) for operation, result in zip(operations, results, strict=True)]


def _version_after(operation: Operation, result: Any) -> int:
    match operation:
        case Create():
            return 0
        case Put():
            return int(result.version)
        case Delete():
            return -1
        case Check(version=version):
            return version
