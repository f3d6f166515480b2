"""What handlers ask of whoever changes the cluster: a node alone (`Controller`), or the brokers of a cluster
(`ClusterAdmin`).

Each operation gives one outcome for each distinct thing it names, refusals included; it returns when this
broker's own metadata shows what was done, or when the client's time is over (7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from protocol.errors import ErrorCode
from replication.controller.feature_changes import FeatureUpdate
from replication.controller.outcomes import (
    ConfigOutcome,
    DeletionOutcome,
    MorePartitions,
    NewTopic,
    PartitionsOutcome,
    TopicOutcome,
    TopicToDelete,
)
from replication.metadata.configs import ConfigChange, ConfigResource


class TopicCreator(Protocol):
    """Creates topics on a broker's own behalf, whoever is the controller."""

    async def create_topics(self, topics: Sequence[NewTopic], *, timeout_ms: int) -> list[TopicOutcome]:
        """One outcome for each distinct name."""


class ControllerDoor(Protocol):
    """See the module."""

    async def create_topics(
        self, topics: Sequence[NewTopic], *, timeout_ms: int, validate_only: bool = False
    ) -> list[TopicOutcome]:
        """CreateTopics."""

    async def delete_topics(
        self, topics: Sequence[TopicToDelete], *, timeout_ms: int
    ) -> list[DeletionOutcome]:
        """DeleteTopics."""

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, timeout_ms: int, validate_only: bool = False
    ) -> list[PartitionsOutcome]:
        """CreatePartitions."""

    async def replace_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
        *,
        validate_only: bool = False,
    ) -> list[ConfigOutcome]:
        """AlterConfigs."""

    async def alter_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
        *,
        validate_only: bool = False,
    ) -> list[ConfigOutcome]:
        """IncrementalAlterConfigs."""

    async def update_features(
        self, updates: Iterable[FeatureUpdate], *, validate_only: bool = False
    ) -> tuple[ErrorCode, str | None]:
        """UpdateFeatures."""
