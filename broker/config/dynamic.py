"""Stored dynamic values take effect: from the cluster image to the broker's configuration and its logs.

Owns the link only. `DynamicConfigs` follows the image; on a change of the broker's own or the default
values it renews the BrokerConfig, and whatever a topic's logs depend on is handed to `apply_topic`.
The order within one change: the broker first, then topics by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import FALLBACK_NAMES, TOPIC_KEYS
from broker.config.topic_configs import TopicConfigs
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, ImageHolder, changes_between
from storage.log_config import LogConfig

_BEHIND_TOPICS: Final = frozenset(
    name
    for key in TOPIC_KEYS.values()
    if key.broker_key
    for name in FALLBACK_NAMES.get(key.broker_key, (key.broker_key,))
)


class DynamicConfigs:
    """Follows the image. `apply_topic(topic, log config)` is called for topics whose settings changed."""

    def __init__(
        self, config: BrokerConfig, topics: TopicConfigs, apply_topic: Callable[[str, LogConfig], None]
    ) -> None:
        self._config = config
        self._topics = topics
        self._apply_topic = apply_topic

    def follow(self, holder: ImageHolder) -> None:
        """Take over what is stored now and every later change."""
        self._take_broker_values(holder.current)
        holder.subscribe(self.changed)

    def log_config(self, image: ClusterImage, topic: str) -> LogConfig:
        """The settings of a topic's logs under an image."""
        return self._topics.log_config(_overrides(image, topic))

    def changed(self, old: ClusterImage, new: ClusterImage) -> None:
        """React to a new image."""
        if old.configs is new.configs:
            return
        resources = changes_between(old, new).configs
        everywhere = False
        if any(resource.type == ConfigType.BROKER for resource in resources):
            everywhere = self._take_broker_values(new)
        if everywhere:
            topics = list(new.topics)
        else:
            topics = [resource.name for resource in resources if resource.type == ConfigType.TOPIC]
        for topic in sorted(topics):
            if topic in new.topics:
                self._apply_topic(topic, self.log_config(new, topic))

    def _take_broker_values(self, image: ClusterImage) -> bool:
        """Renew the broker's values; whether topics may see other defaults now."""
        before = {**self._config.dynamic_default}, {**self._config.dynamic_broker}
        default = image.overrides(ConfigResource(ConfigType.BROKER, ""))
        own = image.overrides(ConfigResource(ConfigType.BROKER, str(self._config.node_id)))
        self._config.apply_dynamic(default, own)
        return any(
            name in _BEHIND_TOPICS and old.get(name) != new.get(name)
            for old, new in zip(before, (default, own), strict=True)
            for name in {**old, **new}
        )


def _overrides(image: ClusterImage, topic: str) -> Mapping[str, str]:
    return image.overrides(ConfigResource(ConfigType.TOPIC, topic))
