"""/admin/reassign_partitions: how tools asked for reassignments before there was an API for it.

Partitions leave the node as their reassignments end; the node goes with the last of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from replication.controller.cluster_state import TopicPartition
from replication.controller.ledger import Ledger
from replication.metadata import controller_payloads, paths, payloads
from replication.metadata.store import Delete, NoNode, Put

_log = logging.getLogger(__name__)

Targets = dict[TopicPartition, tuple[int, ...]]


class LegacyReassignment:
    """The node, read anew each time: tools write it at any moment."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def read(self) -> Targets:
        """The target replicas by partition; nothing where there is no node or it cannot be read."""
        node = await self._ledger.get(paths.REASSIGN_PARTITIONS)
        if node is None:
            return {}
        try:
            named = controller_payloads.decode_reassignment(paths.REASSIGN_PARTITIONS, node.value)
        except payloads.BadPayload as damaged:
            _log.error("A reassignment is not begun: %s", damaged)
            return {}
        return {TopicPartition(*partition): replicas for partition, replicas in named.items()}

    async def forget(self, which: Callable[[TopicPartition, tuple[int, ...]], bool]) -> None:
        """Take the partitions out that `which(partition, target)` chooses."""
        targets = await self.read()
        left = {partition: target for partition, target in targets.items() if not which(partition, target)}
        if len(left) == len(targets):
            return
        try:
            if left:
                value = controller_payloads.encode_reassignment(left)
                await self._ledger.write([Put(paths.REASSIGN_PARTITIONS, value)])
            else:
                await self._ledger.write([Delete(paths.REASSIGN_PARTITIONS)])
        except NoNode:
            return  # taken away meanwhile
