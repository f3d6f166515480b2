"""The settings of groups from the broker's configuration: classic ones and those of KIP-848.

What a finalized feature or a single group decides is asked through callables, as it may change at any time.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.adapters.cluster_topics import ClusterTopics
from broker.config.broker_config import BrokerConfig
from coordinator.group.assignors import chosen_assignors
from coordinator.group.classic.events import GroupSettings
from coordinator.group.consumer.settings import ConsumerSettings, MigrationPolicy
from coordinator.group.shard import ShardSettings
from replication.metadata.image import ImageHolder

Feature = Callable[[], bool]
"""Whether group.version is high enough for consumer groups."""
GroupConfig = Callable[[str, str], int | None]
"""What a group has set for itself under a name; None where it has not."""

_BROKER_KEYS = {
    "consumer.assignment.interval.ms": "group.consumer.assignment.interval.ms",
    "consumer.heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms": "group.consumer.session.timeout.ms",
}


def shard_settings(
    config: BrokerConfig, holder: ImageHolder, feature: Feature, group_config: GroupConfig
) -> ShardSettings:
    """What every shard of the group coordinator works with."""
    return ShardSettings(
        GroupSettings(
            max_size=config.integer("group.max.size"),
            initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
        ),
        config.integer("offset.metadata.max.bytes"),
        ClusterTopics(holder),
        _consumer_settings(config, feature, group_config),
    )


def _consumer_settings(config: BrokerConfig, feature: Feature, group_config: GroupConfig) -> ConsumerSettings:
    def enabled() -> bool:
        protocols = config.names("group.coordinator.rebalance.protocols")
        return feature() and "consumer" in [each.lower() for each in protocols]

    def of_group(group_id: str, name: str) -> int:
        own = group_config(group_id, name)
        return config.integer(_BROKER_KEYS[name]) if own is None else own

    return ConsumerSettings(
        enabled=enabled,
        group_config=of_group,
        max_size=config.integer("group.consumer.max.size"),
        assignors=chosen_assignors(config.names("group.consumer.assignors")),
        migration=MigrationPolicy(config.text("group.consumer.migration.policy").lower()),
        regex_refresh_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
        classic_max_size=config.integer("group.max.size"),
    )
