"""The configuration of one broker: static text, dynamic overrides, effective typed values.

Owns `BrokerConfig`. Precedence of a broker key, the strongest first: dynamic value of this broker,
dynamic default of the cluster, the file (with --override and the environment), Kafka's default.
Typed values are computed on first use and kept until a dynamic change; readers on a hot path keep
what they read and subscribe to changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from broker.config.definitions import BROKER_KEYS, UNIT_MS, base_name, find_broker_key, synonyms_of
from broker.config.values import ConfigError, Value, format_value

GENERATED_NODE_ID_OFFSET: Final = 1


class ConfigSource(IntEnum):
    """Where a value comes from, as DescribeConfigs v1+ numbers it (KIP-226)."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


@dataclass(slots=True, frozen=True)
class Synonym:
    """One place that sets a value: the key's name there, its text, and the source."""

    name: str
    value: str | None
    source: ConfigSource


class BrokerConfig:
    """Every broker key by name: `config["num.partitions"]`, or typed through `integer`, `flag`, `text`...

    `static` is what the user gave (raw text). Unknown keys are kept, because Kafka shows them (as
    sensitive). Raises ConfigError when a static value is wrong.
    """

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static: dict[str, str] = dict(static)
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self._values: dict[str, Value] = {}
        self._subscribers: list[Callable[[frozenset[str]], None]] = []
        for name, text in self.static.items():
            key = find_broker_key(name)
            if key is not None:
                key.parse(text)

    def __getitem__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._compute(name)
            return value

    def _compute(self, name: str) -> Value:
        key = find_broker_key(name)
        if key is None:
            raise KeyError(name)
        for layer in (self.dynamic_broker, self.dynamic_default, self.static):
            text = layer.get(name)
            if text is not None:
                try:
                    return key.parse(text)
                except ConfigError:
                    if layer is self.static:
                        raise
        return key.default_value()

    def integer(self, name: str) -> int:
        """An int, short or long key that has a value."""
        value = self[name]
        assert isinstance(value, int), name
        return value

    def optional_integer(self, name: str) -> int | None:
        """An int, short or long key, None when unset."""
        value = self[name]
        assert value is None or isinstance(value, int), name
        return value

    def number(self, name: str) -> float:
        """A double key."""
        value = self[name]
        assert isinstance(value, float), name
        return value

    def flag(self, name: str) -> bool:
        """A boolean key."""
        value = self[name]
        assert isinstance(value, bool), name
        return value

    def text(self, name: str) -> str:
        """A string, class or password key; the empty text when unset."""
        value = self[name]
        assert value is None or isinstance(value, str), name
        return value or ""

    def names(self, name: str) -> tuple[str, ...]:
        """A list key; empty when unset."""
        value = self[name]
        assert value is None or isinstance(value, tuple), name
        return value or ()

    def duration_ms(self, name: str) -> int:
        """A `.ms` key that falls back to its coarser siblings (log.retention.ms, .minutes, .hours).

        The strongest unit that is set anywhere wins, then the default; whatever is negative is -1.
        """
        fallback: int | None = None
        for sibling in synonyms_of(name):
            value = self.optional_integer(sibling)
            if value is None:
                continue
            scaled = -1 if value < 0 else value * UNIT_MS.get(sibling, 1)
            if self.is_set(sibling):
                return scaled
            fallback = scaled if fallback is None else fallback
        assert fallback is not None, name
        return fallback

    def is_set(self, name: str) -> bool:
        """Whether anything but the default gives this very key."""
        return name in self.dynamic_broker or name in self.dynamic_default or name in self.static

    def synonyms(self, name: str) -> list[Synonym]:
        """All settings of a broker key, the effective one first (DescribeConfigs' synonyms).

        A listener's own key is followed by the plain one. As in Kafka 4.4, a unit fallback such as
        log.retention.hours is not listed under log.retention.ms.
        """
        base = base_name(name)
        names = (name,) if base == name else (name, base)
        found: list[Synonym] = []
        for layer, source in self._layers():
            found.extend(Synonym(each, layer[each], source) for each in names if each in layer)
        for each in names:
            key = BROKER_KEYS.get(each)
            if key is not None and key.default is not None:
                text = format_value(key.default_value())
                found.append(Synonym(each, text, ConfigSource.DEFAULT_CONFIG))
        return found

    def source_of(self, name: str) -> ConfigSource:
        """Where the effective value comes from, unit fallbacks included."""
        for layer, source in self._layers():
            if any(each in layer for each in synonyms_of(name)):
                return source
        return ConfigSource.DEFAULT_CONFIG

    def _layers(self) -> tuple[tuple[dict[str, str], ConfigSource], ...]:
        return (
            (self.dynamic_broker, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (self.dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self.static, ConfigSource.STATIC_BROKER_CONFIG),
        )

    @property
    def configured_node_id(self) -> int | None:
        """`node.id` or `broker.id` when the user gave one; None: stored or generated."""
        for name in ("node.id", "broker.id"):
            value = self.optional_integer(name)
            if value is not None and value >= 0:
                return value
        return None

    @property
    def node_id(self) -> int:
        """This broker's id; without one the first that Kafka would generate."""
        configured = self.configured_node_id
        if configured is not None:
            return configured
        return self.integer("reserved.broker.max.id") + GENERATED_NODE_ID_OFFSET

    def settle_node_id(self, remembered: int | None) -> None:
        """Fix this broker's id: the configured one, else what the data directory remembers, else a generated
        one. Both of its keys then show it, as in Kafka. Call once, before anybody reads the id.
        """
        node_id = self.node_id if self.configured_node_id is not None or remembered is None else remembered
        for name in ("node.id", "broker.id"):
            self.static[name] = str(node_id)
        self._values.clear()

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """Data directories: log.dirs, else log.dir."""
        return self.names("log.dirs") or self.names("log.dir")

    @property
    def metadata_dir(self) -> str:
        """Where cluster metadata lies: metadata.log.dir, else the first data directory."""
        return self.text("metadata.log.dir") or self.log_dirs[0]

    def subscribe(self, tell: Callable[[frozenset[str]], None]) -> None:
        """Call `tell(changed key names)` after each dynamic change."""
        self._subscribers.append(tell)

    def apply_dynamic(self, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Replace the dynamic values of the cluster and of this broker; tell the subscribers.

        Values that do not parse (a newer broker wrote them) are passed over, as Kafka does.
        """
        before = (self.dynamic_default, self.dynamic_broker)
        self.dynamic_default, self.dynamic_broker = dict(default), dict(broker)
        changed = {
            name
            for old, new in zip(before, (self.dynamic_default, self.dynamic_broker), strict=True)
            for name in old.keys() | new.keys()
            if old.get(name) != new.get(name)
        }
        if changed:
            self._values.clear()
            for tell in self._subscribers:
                tell(frozenset(changed))
