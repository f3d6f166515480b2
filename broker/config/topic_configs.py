"""What is in force for a topic: its overrides over the broker's values, and the checks of overrides.

Owns `TopicConfigs`. Precedence: the topic's override, then the broker key it takes its default from
(with that key's own precedence, see broker_config.py), then the topic key's default.
"""

from collections.abc import Mapping

from broker.config.broker_config import BrokerConfig, ConfigSource, Synonym
from broker.config.definitions import FALLBACK_NAMES, TOPIC_KEYS, ConfigKey
from broker.config.values import ConfigError, Value, format_value
from storage.log_config import LogConfig

_LOG_CONFIGS_MAX = 1_000
_GONE_TIMESTAMP_KEY = "message.timestamp.difference.max.ms"


class TopicConfigs:
    """Topic settings as one broker sees them."""

    def __init__(self, broker: BrokerConfig) -> None:
        self._broker = broker
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        broker.subscribe(lambda _: self._log_configs.clear())

    def validate(self, overrides: Mapping[str, str]) -> None:
        """Check a whole set of overrides; raises ConfigError with Kafka's text for the first fault."""
        for name, text in overrides.items():
            key = TOPIC_KEYS.get(name)
            if key is None:
                raise ConfigError(f"Unknown topic config name: {name}")
            key.parse(text)
        if self._flag(overrides, "remote.storage.enable"):
            raise ConfigError(
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            )
        shortest = self.value(overrides, "min.compaction.lag.ms")
        longest = self.value(overrides, "max.compaction.lag.ms")
        assert isinstance(shortest, int)
        assert isinstance(longest, int)
        if shortest > longest:
            raise ConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
                f"max.compaction.lag.ms ({longest})"
            )

    def _flag(self, overrides: Mapping[str, str], name: str) -> bool:
        return self.value(overrides, name) is True

    def value(self, overrides: Mapping[str, str], name: str) -> Value:
        """The typed value in force. Raises KeyError for a name that is no topic key."""
        key = TOPIC_KEYS[name]
        text = overrides.get(name)
        if text is not None:
            try:
                return key.parse(text)
            except ConfigError:
                pass  # stored by a release with other rules: what is inherited counts
        return self.inherited(key)

    def inherited(self, key: ConfigKey) -> Value:
        """The typed value in force where the topic has no override."""
        if not key.broker_key:
            return key.default_value()
        if key.broker_key in FALLBACK_NAMES:
            return self._broker.duration_ms(key.broker_key)
        return self._broker[key.broker_key]

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """The settings of the topic's logs; topics with the same overrides share the object."""
        key = frozenset(overrides.items())
        known = self._log_configs.get(key)
        if known is None:
            if len(self._log_configs) >= _LOG_CONFIGS_MAX:
                self._log_configs.clear()
            known = self._log_configs[key] = self._log_config(overrides)
        return known

    def _log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        values = {name: self.value(overrides, name) for name in TOPIC_KEYS}
        segment_bytes = values["internal.segment.bytes"]
        if segment_bytes is not None:
            values["segment.bytes"] = segment_bytes
        if _GONE_TIMESTAMP_KEY in overrides:  # 3.9 uses it while its two successors are not set
            for name in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"):
                if name not in overrides:
                    values[name] = values[_GONE_TIMESTAMP_KEY]
        return LogConfig.from_kafka(values)

    def synonyms(self, overrides: Mapping[str, str], name: str) -> list[Synonym]:
        """All settings behind a topic's value, the effective one first."""
        key = TOPIC_KEYS[name]
        found = self._broker.synonyms(key.broker_key) if key.broker_key else []
        if name in overrides:
            text = format_value(self.value(overrides, name))
            found.insert(0, Synonym(name, text, ConfigSource.TOPIC_CONFIG))
        return found

    def source_of(self, overrides: Mapping[str, str], name: str) -> ConfigSource:
        """Where the value in force comes from, the broker's unit fallbacks included."""
        if name in overrides:
            return ConfigSource.TOPIC_CONFIG
        broker_key = TOPIC_KEYS[name].broker_key
        return self._broker.source_of(broker_key) if broker_key else ConfigSource.DEFAULT_CONFIG

    def shown_names(self, overrides: Mapping[str, str]) -> list[str]:
        """The keys that DescribeConfigs lists: those of 4.4.0, and others where they are set."""
        return [
            key.name
            for key in TOPIC_KEYS.values()
            if key.name in overrides or (key.era != "<4" and not key.internal)
        ]
