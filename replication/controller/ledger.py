"""The store as one controller may change it: every write is fenced by the controller epoch.

A fenced write is one transaction that first checks the version of /controller_epoch. When that check fails
another controller has been elected, and nothing of this one may reach the store any more: `ControllerMoved`
is raised, as it is when the session is over. The writes of several partitions share a transaction, since
a round trip costs more than an operation; one that is refused is taken out and the others go again.

An answer that was lost with the connection leaves open whether the write happened. It is then repeated, and
when the repetition is refused the nodes are compared with what was to be written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from replication.controller.cluster_state import Leadership, TopicPartition
from replication.metadata import paths, payloads
from replication.metadata.store import (
    ANY_VERSION,
    BadVersion,
    Check,
    ConnectionLost,
    Create,
    Delete,
    MetadataStore,
    Node,
    NodeExists,
    NoNode,
    Operation,
    Put,
    SessionExpired,
    StoreError,
    StoreFailed,
)

T = TypeVar("T")

OPERATIONS_PER_TRANSACTION: Final = 100
"""About 20 KiB of paths and states; ZooKeeper takes 1 MiB in one request."""


class ControllerMoved(Exception):
    """Another broker is the controller, or this one has lost its session: stop at once."""


@dataclass(slots=True)
class Written:
    """What became of the states to write: those that stand now, those that somebody else changed meanwhile,
    and those whose node is not there (or, for a creation, is there).
    """

    done: dict[TopicPartition, Leadership] = field(default_factory=dict)
    conflicts: list[TopicPartition] = field(default_factory=list)
    failed: list[TopicPartition] = field(default_factory=list)


class Ledger:
    """Reads and fenced writes of the controller that was elected with `epoch`."""

    def __init__(
        self, store: MetadataStore, epoch: int, epoch_version: int, pause: Callable[[], Awaitable[None]]
    ) -> None:
        """`epoch_version` is the version of /controller_epoch after the election; `pause` waits before an
        operation is repeated that lost its connection.
        """
        self.epoch = epoch
        self._store = store
        self._fence = Check(paths.CONTROLLER_EPOCH, epoch_version)
        self._pause = pause
        self._revoked = False

    def revoke(self) -> None:
        """Nothing is written from now on, not even what waits for its connection."""
        self._revoked = True

    # Reading

    async def get(self, path: str) -> Node | None:
        return await self._until_connected(lambda: self._store.get(path))

    async def get_many(self, paths: Sequence[str]) -> dict[str, Node]:
        """The nodes of those paths that exist."""
        return await self._until_connected(lambda: self._store.get_many(paths))

    async def children(self, path: str) -> list[str]:
        """The names of the children; none where there is no such node."""
        try:
            return await self._until_connected(lambda: self._store.children(path))
        except NoNode:
            return []

    async def subtree(self, path: str) -> dict[str, Node]:
        return await self._until_connected(lambda: self._store.subtree(path))

    async def leadership(self, partition: TopicPartition) -> Leadership | None:
        """What is stored of a partition, or None."""
        path = paths.partition_state(*partition)
        node = await self.get(path)
        return None if node is None else leadership_in(path, node)

    # Writing

    async def write(self, operations: Sequence[Operation]) -> list[int]:
        """Apply all or none, if this controller still is the one. Raises ControllerMoved, StoreFailed, and
        StoreError whose `operation_index` counts from the first of `operations`.
        """
        try:
            return (await self._apply([self._fence, *operations]))[1:]
        except StoreFailed:
            raise  # of no operation's, and the epoch is not over
        except StoreError as error:
            if error.operation_index == 0:
                raise ControllerMoved(f"controller epoch {self.epoch} is over") from error
            error.operation_index -= 1
            raise

    async def write_unfenced(self, operations: Sequence[Operation]) -> list[int]:
        """As `write`, for what any broker may write: topics to create, configurations."""
        return await self._apply(operations)

    async def abdicate(self) -> None:
        """Take /controller away, if this controller still is the one, so that another is elected. The one
        write that is made after `revoke`.
        """
        self._revoked = False
        try:
            await self.write([Delete(paths.CONTROLLER)])
        except (ControllerMoved, NoNode):
            return
        finally:
            self._revoked = True

    async def put_leaderships(self, wanted: Mapping[TopicPartition, Leadership]) -> Written:
        """Replace the states, each only if its node still has the partition epoch that the wanted leadership
        was made from. Done ones carry the new partition epoch and this controller's epoch.
        """
        return await self._write_states(wanted, self._replacement)

    async def create_leaderships(self, wanted: Mapping[TopicPartition, Leadership]) -> Written:
        """Make the nodes of new partitions, those above their states included."""
        folders = [paths.partitions(topic) for topic in dict.fromkeys(p.topic for p in wanted)]
        present = await self.get_many([*folders, *(paths.partition(*partition) for partition in wanted)])
        for folder in folders:
            if folder not in present:
                await self._create_folder(folder)

        def creation(partition: TopicPartition, leadership: Leadership) -> list[Operation]:
            operations: list[Operation] = []
            if paths.partition(*partition) not in present:
                operations.append(Create(paths.partition(*partition), b""))
            operations.append(Create(paths.partition_state(*partition), self._encoded(leadership)))
            return operations

        return await self._write_states(wanted, creation)

    async def _create_folder(self, path: str) -> None:
        try:
            await self.write([Create(path, b"")])
        except (NodeExists, NoNode):
            return  # made meanwhile; or its topic is gone, which the creations of its partitions will tell

    def _replacement(self, partition: TopicPartition, leadership: Leadership) -> list[Operation]:
        path = paths.partition_state(*partition)
        return [Put(path, self._encoded(leadership), leadership.partition_epoch)]

    def _encoded(self, leadership: Leadership) -> bytes:
        return payloads.encode_state(
            payloads.StatePayload(
                leadership.leader, leadership.leader_epoch, self.epoch, leadership.isr, leadership.recovering
            )
        )

    async def _write_states(
        self,
        wanted: Mapping[TopicPartition, Leadership],
        operations_of: Callable[[TopicPartition, Leadership], list[Operation]],
    ) -> Written:
        written = Written()
        waiting = list(wanted)
        while waiting:
            chunk: list[tuple[TopicPartition, list[Operation]]] = []
            size = 0
            for partition in waiting:
                chunk.append((partition, operations_of(partition, wanted[partition])))
                size += len(chunk[-1][1])
                if size >= OPERATIONS_PER_TRANSACTION:
                    break
            try:
                versions = await self.write([op for _, operations in chunk for op in operations])
            except (BadVersion, NoNode, NodeExists) as refusal:
                at = _owner_of(refusal.operation_index, chunk)
                refused = written.conflicts if isinstance(refusal, BadVersion) else written.failed
                refused.append(waiting.pop(at))
                continue
            ends = 0
            for partition, operations in chunk:
                ends += len(operations)
                written.done[partition] = replace(
                    wanted[partition], partition_epoch=versions[ends - 1], controller_epoch=self.epoch
                )
            del waiting[: len(chunk)]
            await asyncio.sleep(0)
        return written

    async def _apply(self, operations: Sequence[Operation]) -> list[int]:
        """One transaction, repeated until an answer comes."""
        lost = False
        while True:
            self._require_session()
            try:
                return await self._store.multi(operations)
            except SessionExpired as error:
                raise ControllerMoved("the session is over") from error
            except ConnectionLost:
                lost = True
                await self._pause()
            except StoreError as refusal:
                if lost and not isinstance(operations[refusal.operation_index], Check):
                    applied = await self._versions_if_applied(operations)
                    if applied is not None:
                        return applied
                raise

    async def _versions_if_applied(self, operations: Sequence[Operation]) -> list[int] | None:
        """What the transaction would have answered if all its nodes are as it leaves them, else None."""
        versions: list[int] = []
        for operation in operations:
            if isinstance(operation, Check):
                versions.append(operation.version)
                continue
            node = await self.get(operation.path)
            if isinstance(operation, Delete):
                if node is not None:
                    return None
                versions.append(-1)
                continue
            if node is None or node.value != operation.value:
                return None
            if isinstance(operation, Put) and operation.version not in (ANY_VERSION, node.version - 1):
                return None
            versions.append(node.version)
        return versions

    async def _until_connected(self, read: Callable[[], Awaitable[T]]) -> T:
        while True:
            self._require_session()
            try:
                return await read()
            except SessionExpired as error:
                raise ControllerMoved("the session is over") from error
            except ConnectionLost:
                await self._pause()

    def _require_session(self) -> None:
        if self._revoked:
            raise ControllerMoved(f"controller epoch {self.epoch} is over")


def leadership_in(path: str, node: Node) -> Leadership:
    """The leadership that a state node holds. Raises BadPayload."""
    state = payloads.decode_state(path, node.value)
    return Leadership(
        state.leader, state.leader_epoch, state.isr, node.version, state.controller_epoch, state.recovering
    )


def _owner_of(index: int, chunk: Sequence[tuple[TopicPartition, Sequence[Operation]]]) -> int:
    """Which entry of the chunk the operation at `index` belongs to."""
    for at, (_, operations) in enumerate(chunk):
        index -= len(operations)
        if index < 0:
            return at
    raise AssertionError("an operation outside its own transaction was refused")
