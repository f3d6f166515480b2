"""Stored values of brokers reach the configuration and the logs without a restart."""

from __future__ import annotations

from dataclasses import replace

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic import DynamicConfigs
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, ImageHolder

OWN = ConfigResource(ConfigType.BROKER, "1")
OTHER = ConfigResource(ConfigType.BROKER, "2")
DEFAULT = ConfigResource(ConfigType.BROKER, "")
TOPIC = ConfigResource(ConfigType.TOPIC, "t")


class Following:
    """Counts how often the logs were refreshed, and with which limit."""

    def __init__(self, image: ClusterImage) -> None:
        self.config = BrokerConfig({"node.id": "1"})
        self.refreshed: list[int] = []
        self.holder = ImageHolder(image)
        self.dynamic = DynamicConfigs(self.config)
        self.dynamic.follow(self.holder)
        self.dynamic.refresh_logs = self.refresh

    def refresh(self) -> None:
        self.refreshed.append(self.config.integer("message.max.bytes"))

    def change(self, configs: dict[ConfigResource, dict[str, str]]) -> list[int]:
        self.refreshed.clear()
        self.holder.publish(self.holder.current.with_configs(configs))
        return self.refreshed


def test_what_is_stored_at_the_start_holds_at_once() -> None:
    following = Following(ClusterImage().with_configs({DEFAULT: {"message.max.bytes": "5"}}))
    assert following.config.integer("message.max.bytes") == 5


def test_new_defaults_of_topics_refresh_the_logs() -> None:
    following = Following(ClusterImage())
    assert following.change({DEFAULT: {"message.max.bytes": "20"}}) == [20]
    assert following.change({OWN: {"message.max.bytes": "30"}}) == [30]
    assert following.change({OWN: {}}) == [20]
    assert following.change({DEFAULT: {"message.max.bytes": "20", "log.retention.ms": "7"}}) == [20]


def test_other_brokers_other_keys_and_topics_do_not() -> None:
    following = Following(ClusterImage())
    assert following.change({OTHER: {"message.max.bytes": "20"}}) == []
    assert following.config.integer("message.max.bytes") == 1_048_588
    assert following.change({OWN: {"max.connections": "3"}}) == []
    assert following.config.integer("max.connections") == 3
    assert following.change({TOPIC: {"max.message.bytes": "3"}}) == []


def test_an_image_with_the_same_configs_is_no_news() -> None:
    following = Following(ClusterImage())
    following.holder.publish(replace(following.holder.current, controller_epoch=5))
    assert following.refreshed == []
