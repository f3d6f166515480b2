"""Who is the controller: the broker whose session made /controller, under an epoch that no other one had.

The node and the epoch are written in one transaction, so each election raises the epoch by exactly one, and
all that earlier controllers still want to write is refused from then on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from replication.metadata import controller_payloads, paths
from replication.metadata.store import (
    BadVersion,
    ConnectionLost,
    Create,
    MetadataStore,
    NodeExists,
    NoNode,
    Put,
)


@dataclass(slots=True, frozen=True)
class Won:
    """The epoch of the elected controller, the version of its node, and what /controller holds."""

    epoch: int
    epoch_version: int
    value: bytes


async def stand(
    store: MetadataStore, broker_id: int, timestamp_ms: int, pause: Callable[[], Awaitable[None]]
) -> Won | None:
    """Try to be elected; None where another broker is the controller. Raises SessionExpired.

    An answer that was lost is recognised: the election has succeeded if the node holds what this broker wrote
    and the epoch is the one it wanted.
    """
    value = controller_payloads.encode_controller(broker_id, timestamp_ms)
    wanted: Won | None = None
    while True:
        try:
            holder = await store.get(paths.CONTROLLER)
            if holder is not None:
                epoch, version = await _epoch(store)
                won = wanted == Won(epoch, version, value) and holder.value == value
                return wanted if won else None
            epoch, version = await _epoch(store)
            wanted = Won(epoch + 1, version + 1, value)
            await store.multi(
                [
                    Create(paths.CONTROLLER, value, ephemeral=True),
                    Put(paths.CONTROLLER_EPOCH, str(epoch + 1).encode(), version),
                ]
            )
            return wanted
        except (NodeExists, BadVersion):
            continue
        except ConnectionLost:
            await pause()


async def _epoch(store: MetadataStore) -> tuple[int, int]:
    """The epoch and the version of its node, which is made if it is missing."""
    while True:
        node = await store.get(paths.CONTROLLER_EPOCH)
        if node is not None:
            return int(node.value), node.version
        try:
            await store.create(paths.CONTROLLER_EPOCH, b"0")
        except (NodeExists, NoNode):
            continue
