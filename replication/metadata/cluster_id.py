"""The id of the cluster: 16 random bytes as 22 characters of URL-safe base64, made once and kept for good."""

from __future__ import annotations

from replication.metadata import paths, payloads
from replication.metadata.retry import retried
from replication.metadata.store import MetadataStore, NodeExists, ensure_path


async def ensure_cluster_id(store: MetadataStore, proposed: str) -> str:
    """The stored id; where there is none yet, `proposed` becomes it, unless another broker was faster.

    `proposed` is the id in meta.properties of a log directory that was here before, else a fresh one
    (`uuid_to_text(random.uuid())`).
    """
    node = await retried(store, lambda: store.get(paths.CLUSTER_ID))
    if node is None:
        await retried(store, lambda: ensure_path(store, "/cluster"))
        value = payloads.encode_cluster_id(proposed)
        try:
            await retried(store, lambda: store.create(paths.CLUSTER_ID, value))
        except NodeExists:  # of another broker, or of an attempt of ours whose answer was lost
            node = await retried(store, lambda: store.get(paths.CLUSTER_ID))
        else:
            return proposed
    assert node is not None, "a cluster id that exists is never removed"
    return payloads.decode_cluster_id(paths.CLUSTER_ID, node.value)
