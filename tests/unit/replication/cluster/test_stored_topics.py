"""What the store says of topics."""

from __future__ import annotations

import asyncio

import pytest

from replication.cluster.stored_topics import StoredTopics
from replication.metadata import paths
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.payloads import BadPayload, TopicPayload, encode_topic
from replication.metadata.store import ensure_path

MARKER = f"{paths.DELETE_TOPICS}/t"


def counts(*made: str) -> int:
    """How many partitions a topic has after these nodes were made."""

    async def count() -> int:
        store = MemoryStore(MemoryTree())
        await store.open()
        for root in paths.ROOTS:
            await ensure_path(store, root)
        topic = encode_topic(TopicPayload(bytes(range(16)), {0: (1, 2), 1: (2, 1), 2: (1,)}, {}, {}))
        for path in made:
            await store.create(path, b"" if path == MARKER else topic)
        return await StoredTopics(store).partition_count("t")

    return asyncio.run(count())


def test_all_partitions_count() -> None:
    assert counts(paths.topic("t")) == 3


def test_a_topic_that_is_not_there_has_none() -> None:
    assert counts() == 0


def test_a_topic_that_is_to_be_deleted_has_none() -> None:
    assert counts(paths.topic("t"), MARKER) == 0


def test_a_damaged_node_is_told_of() -> None:
    async def count() -> int:
        store = MemoryStore(MemoryTree())
        await store.open()
        await ensure_path(store, paths.TOPICS)
        await store.create(paths.topic("t"), b"{")
        return await StoredTopics(store).partition_count("t")

    with pytest.raises(BadPayload):
        asyncio.run(count())
