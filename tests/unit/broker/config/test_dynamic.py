"""Stored values reach the broker's configuration and the logs without a restart."""

from __future__ import annotations

from dataclasses import replace

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic import DynamicConfigs
from broker.config.topic_configs import TopicConfigs
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, ImageHolder, TopicImage
from storage.log_config import LogConfig

OWN = ConfigResource(ConfigType.BROKER, "1")
OTHER = ConfigResource(ConfigType.BROKER, "2")
DEFAULT = ConfigResource(ConfigType.BROKER, "")


def topic(name: str) -> ConfigResource:
    return ConfigResource(ConfigType.TOPIC, name)


class Following:
    def __init__(self, image: ClusterImage) -> None:
        self.config = BrokerConfig({"node.id": "1"})
        self.applied: list[tuple[str, LogConfig]] = []
        self.holder = ImageHolder(image)
        self.dynamic = DynamicConfigs(
            self.config, TopicConfigs(self.config), lambda name, log: self.applied.append((name, log))
        )
        self.dynamic.follow(self.holder)

    def change(self, configs: dict[ConfigResource, dict[str, str]]) -> list[tuple[str, LogConfig]]:
        self.applied.clear()
        self.holder.publish(self.holder.current.with_configs(configs))
        return self.applied


def image(*topics: str) -> ClusterImage:
    return ClusterImage().with_topics(
        [TopicImage(name, bytes(15) + bytes([number]), ()) for number, name in enumerate(topics, 1)]
    )


def test_what_is_stored_at_the_start_holds_at_once() -> None:
    following = Following(image().with_configs({DEFAULT: {"message.max.bytes": "5"}}))
    assert following.config.integer("message.max.bytes") == 5


def test_a_topics_override_reaches_its_logs_alone() -> None:
    following = Following(image("a", "b"))
    ((name, log),) = following.change({topic("a"): {"max.message.bytes": "10"}})
    assert (name, log.max_message_bytes) == ("a", 10)
    ((name, log),) = following.change({topic("a"): {}})
    assert (name, log.max_message_bytes) == ("a", 1_048_588)


def test_a_new_default_reaches_every_topic_by_name() -> None:
    following = Following(image("b", "a"))
    following.change({topic("b"): {"max.message.bytes": "10"}})
    applied = following.change({DEFAULT: {"message.max.bytes": "20"}})
    assert [(name, log.max_message_bytes) for name, log in applied] == [("a", 20), ("b", 10)]
    applied = following.change({OWN: {"message.max.bytes": "30"}})
    assert [(name, log.max_message_bytes) for name, log in applied] == [("a", 30), ("b", 10)]


def test_unit_fallbacks_count_as_defaults() -> None:
    following = Following(image("a"))
    ((_, log),) = following.change({DEFAULT: {"log.retention.ms": "77"}})
    assert log.retention_ms == 77


def test_other_brokers_and_other_keys_change_no_log() -> None:
    following = Following(image("a"))
    assert following.change({OTHER: {"message.max.bytes": "20"}}) == []
    assert following.config.integer("message.max.bytes") == 1_048_588
    assert following.change({OWN: {"max.connections": "3"}}) == []
    assert following.config.integer("max.connections") == 3


def test_topics_that_are_gone_are_passed_over() -> None:
    following = Following(image("a").with_configs({topic("a"): {"max.message.bytes": "10"}}))
    following.holder.publish(following.holder.current.with_topics((), ["a"]).with_configs({topic("a"): {}}))
    assert following.applied == []


def test_an_image_with_the_same_configs_is_no_news() -> None:
    following = Following(image("a"))
    following.holder.publish(replace(following.holder.current, controller_epoch=5))
    assert following.applied == []
