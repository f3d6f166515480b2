"""Finalized features: which level of a protocol the whole cluster has agreed to speak (KIP-584).

The levels lie in one node of our own, `/ottla/features`; Kafka's `/feature` stays as Kafka left it. Its JSON
maps a feature to its level. The epoch that clients compare is the version of that node. A feature that the
node does not name, or a tree without the node, has the highest level that is supported: a fresh cluster of
Kafka 4.4 finalizes everything, too. Level 0 is off.

No level in force is above what every registered broker knows. An Apache Kafka 3.9 that shares the cluster
knows none: it may become the coordinator of any group at any time, and has neither consumer groups of KIP-848
in a cluster with ZooKeeper nor share groups. So both are off for as long as it is registered.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from replication.metadata.payloads import BadPayload
from replication.metadata.store import Node

GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
TRANSACTION_VERSION: Final = "transaction.version"

SUPPORTED: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {GROUP_VERSION: (0, 1), SHARE_VERSION: (0, 1), TRANSACTION_VERSION: (0, 2)}
)
"""Lowest and highest level of each feature. Kafka 4.4 has share.version 2, too: dead-letter queues."""

NO_NODE: Final = -1


@dataclass(slots=True, frozen=True)
class FeatureImage:
    """`epoch` rises with each change; `stored` holds what the node names, `NO_NODE` is its version before
    there is one. `limits` are what all brokers of a cluster know (`common_levels`); None: only this one
    counts.
    """

    stored: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    version: int = NO_NODE
    limits: Mapping[str, int] | None = None

    @property
    def epoch(self) -> int:
        """Never negative: -1 tells clients that features are unknown."""
        return self.version + 1

    def level(self, feature: str) -> int:
        """The level in force; 0 for a feature that is off or not known here."""
        lowest, highest = SUPPORTED.get(feature, (0, 0))
        if self.limits is not None:
            highest = min(highest, self.limits.get(feature, 0))
        return max(lowest, min(highest, self.stored.get(feature, highest)))

    def levels(self) -> dict[str, int]:
        """Every supported feature with its level."""
        return {feature: self.level(feature) for feature in SUPPORTED}


def supported_levels() -> dict[str, int]:
    """The highest level of each feature that this broker knows, for its registration."""
    return {feature: highest for feature, (_, highest) in SUPPORTED.items()}


def common_levels(brokers: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The highest level of each feature that this broker and all of these know."""
    levels = supported_levels()
    for known in brokers:
        levels = {feature: min(level, known.get(feature, 0)) for feature, level in levels.items()}
    return levels


def encode_features(levels: Mapping[str, int]) -> bytes:
    """The node's value."""
    return json.dumps({"version": 1, "features": dict(levels)}, separators=(",", ":")).encode()


def read_features(path: str, node: Node | None) -> FeatureImage:
    """The features of a tree. Raises BadPayload."""
    if node is None:
        return FeatureImage()
    try:
        value = json.loads(node.value)
        levels = value["features"]
        if not isinstance(levels, dict) or not all(type(level) is int for level in levels.values()):
            raise TypeError("levels are numbers by feature")
    except (ValueError, KeyError, TypeError) as error:
        raise BadPayload(path, str(error)) from error
    return FeatureImage(MappingProxyType(levels), node.version)
