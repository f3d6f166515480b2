"""Stored dynamic values of brokers take effect: from the cluster image to the broker's configuration.

`DynamicConfigs` follows the image. On a change of this broker's own or the default values it renews the
BrokerConfig, and where topics take such a value as their default it calls `refresh_logs`. What a topic itself
overrides is followed by the replica manager, which must subscribe to the image after this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.definitions import FALLBACK_NAMES, TOPIC_KEYS
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, ImageHolder

_BEHIND_TOPICS: Final = frozenset(
    name
    for key in TOPIC_KEYS.values()
    if key.broker_key
    for name in FALLBACK_NAMES.get(key.broker_key, (key.broker_key,))
)


class DynamicConfigs:
    """Follows the image; `refresh_logs()` builds the settings of all logs anew."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._stale = False
        self.refresh_logs: Callable[[], None] | None = None
        config.subscribe(self._note)

    def follow(self, holder: ImageHolder) -> None:
        """Take over what is stored now and every later change."""
        self._take(holder.current)
        holder.subscribe(self._changed)

    def _changed(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.configs is not new.configs:
            self._take(new)

    def _take(self, image: ClusterImage) -> None:
        default = image.overrides(ConfigResource(ConfigType.BROKER, ""))
        own = image.overrides(ConfigResource(ConfigType.BROKER, str(self._config.node_id)))
        self._stale = False
        self._config.apply_dynamic(default, own)
        if self._stale and self.refresh_logs is not None:
            self.refresh_logs()

    def _note(self, names: frozenset[str]) -> None:
        self._stale = not names.isdisjoint(_BEHIND_TOPICS)
