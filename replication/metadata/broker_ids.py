"""Ids for brokers that are given none (broker.id.generation.enable): each is given once in a cluster.

The version of /brokers/seqid rises with each put, whoever makes it; so it is the counter. Generated ids begin
above reserved.broker.max.id, below which those lie that people give.
"""

from __future__ import annotations

from replication.metadata import paths
from replication.metadata.retry import retried
from replication.metadata.store import MetadataStore, ensure_path


async def next_broker_id(store: MetadataStore, reserved_max: int) -> int:
    """An id that nobody has had; an attempt whose answer was lost leaves a gap. Raises StoreError."""
    await retried(store, lambda: ensure_path(store, paths.BROKER_SEQUENCE))
    version = await retried(store, lambda: store.put(paths.BROKER_SEQUENCE, b""))
    return reserved_max + version
