"""Settings of groups from the broker's configuration."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.group_configs import GroupConfigs
from broker.group_settings import shard_settings
from coordinator.group.consumer.settings import ConsumerSettings, MigrationPolicy
from coordinator.group.share.ports import ShareSettings
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, ImageHolder
from tests.unit.coordinator.group.share.play import Play


def settings(feature: bool = True, image: ClusterImage | None = None, **keys: str) -> ConsumerSettings:
    config = BrokerConfig({name.replace("_", "."): value for name, value in keys.items()})
    holder = ImageHolder(image)
    return shard_settings(config, holder, lambda: feature, GroupConfigs(config, holder).integer).consumer


def test_kafkas_defaults() -> None:
    consumer = settings()
    assert consumer.enabled()
    assert list(consumer.assignors) == ["uniform", "range"]
    assert consumer.migration is MigrationPolicy.BIDIRECTIONAL
    assert (consumer.max_size, consumer.classic_max_size) == (2**31 - 1, 2**31 - 1)
    assert consumer.regex_refresh_ms == 600_000
    names = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    assert [consumer.group_config("g", f"consumer.{name}") for name in names] == [45_000, 5_000, 1_000]


def test_keys_have_their_effect() -> None:
    consumer = settings(
        group_consumer_assignors="range",
        group_consumer_migration_policy="UPGRADE",
        group_consumer_max_size="7",
        group_max_size="8",
        group_consumer_heartbeat_interval_ms="6000",
    )
    assert list(consumer.assignors) == ["range"]
    assert consumer.migration is MigrationPolicy.UPGRADE
    assert (consumer.max_size, consumer.classic_max_size) == (7, 8)
    assert consumer.group_config("g", "consumer.heartbeat.interval.ms") == 6000


@pytest.mark.parametrize(
    ("feature", "protocols", "wanted"),
    [(True, "classic,consumer", True), (True, "classic", False), (False, "classic,consumer", False)],
)
def test_the_protocol_is_on_by_feature_and_configuration(feature: bool, protocols: str, wanted: bool) -> None:
    assert settings(feature, group_coordinator_rebalance_protocols=protocols).enabled() is wanted


def test_what_a_group_says_for_itself_comes_first() -> None:
    own = {ConfigResource(ConfigType.GROUP, "g"): {"consumer.session.timeout.ms": "50000"}}
    consumer = settings(image=ClusterImage(configs=own))
    assert consumer.group_config("g", "consumer.session.timeout.ms") == 50_000
    assert consumer.group_config("other", "consumer.session.timeout.ms") == 45_000


def share_settings(image: ClusterImage | None = None, **keys: str) -> ShareSettings:
    config = BrokerConfig({name.replace("_", "."): value for name, value in keys.items()})
    holder = ImageHolder(image)
    made = shard_settings(config, holder, lambda: True, GroupConfigs(config, holder).integer).make_share
    assert made is not None
    return made(Play().groups.parts).settings


def test_share_groups_have_theirs() -> None:
    share = share_settings()
    assert (share.max_size, share.initialize_retry_ms) == (200, 30_000)
    assert share.session_timeout_ms("g") == 45_000
    own = {ConfigResource(ConfigType.GROUP, "g"): {"share.session.timeout.ms": "50000"}}
    share = share_settings(
        ClusterImage(configs=own), group_share_max_size="7", group_share_heartbeat_interval_ms="6000"
    )
    assert share.max_size == 7
    assert [share.session_timeout_ms(each) for each in ("g", "other")] == [50_000, 45_000]
    assert share.heartbeat_interval_ms("g") == 6000
    assert share.assignment_interval_ms("g") == 1000
