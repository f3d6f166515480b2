"""The settings of groups from the broker's configuration: classic ones, and those of KIP-848 and KIP-932.

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
from coordinator.group.share.groups import ShareGroups
from coordinator.group.share.ports import ShareSettings
from replication.metadata.image import ImageHolder

Feature = Callable[[], bool]
"""Whether group.version is high enough for consumer groups."""
GroupConfig = Callable[[str, str], int]
"""What is in force for a group under a name, its own settings and the broker's taken together."""


def shard_settings(
    config: BrokerConfig, holder: ImageHolder, feature: Feature, group_config: GroupConfig
) -> ShardSettings:
    """What every shard of the group coordinator works with."""
    share = _share_settings(config, group_config)
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
        lambda parts: ShareGroups(parts, share),
    )


def _consumer_settings(config: BrokerConfig, feature: Feature, group_config: GroupConfig) -> ConsumerSettings:
    def enabled() -> bool:
        protocols = config.names("group.coordinator.rebalance.protocols")
        return feature() and "consumer" in [each.lower() for each in protocols]

    return ConsumerSettings(
        enabled=enabled,
        group_config=group_config,
        max_size=config.integer("group.consumer.max.size"),
        assignors=chosen_assignors(config.names("group.consumer.assignors")),
        migration=MigrationPolicy(config.text("group.consumer.migration.policy").lower()),
        regex_refresh_ms=config.integer("group.consumer.regex.refresh.interval.ms"),
        classic_max_size=config.integer("group.max.size"),
    )


def _share_settings(config: BrokerConfig, group_config: GroupConfig) -> ShareSettings:
    def setting(name: str) -> Callable[[str], int]:
        return lambda group_id: group_config(group_id, name)

    return ShareSettings(
        max_size=config.integer("group.share.max.size"),
        session_timeout_ms=setting("share.session.timeout.ms"),
        heartbeat_interval_ms=setting("share.heartbeat.interval.ms"),
        assignment_interval_ms=setting("share.assignment.interval.ms"),
        initialize_retry_ms=config.integer("group.share.initialize.retry.interval.ms"),
    )
