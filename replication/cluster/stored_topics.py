"""What the store says of topics, for those who must not take silence for absence.

A broker of a cluster hears of partitions one by one. Right after its start, or while a controller begins its
office, there are topics and partitions that it has not been told of yet.
"""

from __future__ import annotations

import asyncio

from replication.metadata import paths, payloads
from replication.metadata.retry import outlasting
from replication.metadata.store import MetadataStore


class StoredTopics:
    """See the module."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    async def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; 0 where it is not there, or is to be deleted.

        However long the store cannot be reached. Raises StoreError and BadPayload.
        """
        node, marker = await outlasting(
            self._store,
            lambda: asyncio.gather(
                self._store.get(paths.topic(topic)),
                self._store.get(f"{paths.DELETE_TOPICS}/{topic}"),
            ),
        )
        if node is None or marker is not None:
            return 0
        return len(payloads.decode_topic(paths.topic(topic), node.value).assignment)
