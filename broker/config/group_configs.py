"""Settings of single groups (KIP-848, KIP-932): the checks of resources of type 32, and what is in force.

A group need not exist to have settings. Precedence: the group's own value, then the broker key behind it,
then the key's default. What a group may set lies between the broker's bounds; a value that was stored under
other bounds is shown as it is, and the nearest one that is allowed is in force.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from broker.config.broker_config import BrokerConfig, ConfigSource, Synonym
from broker.config.definitions import GROUP_KEYS, ConfigKey
from broker.config.durations import iso_duration_ms
from broker.config.values import ConfigError, Value, format_value, invalid
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ImageHolder

RESET: Final = "share.auto.offset.reset"
TAGS: Final = "streams.rack.aware.assignment.tags"
ASSIGNOR: Final = "streams.assignor.name"
DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"

BY_DURATION: Final = "by_duration:"

Bounds = tuple[str | None, str | None]

BOUNDS: Final[dict[str, Bounds]] = {
    f"{kind}.{name}": (f"group.{kind}.min.{name}", f"group.{kind}.max.{name}")
    for kind, names in (
        ("consumer", ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")),
        (
            "share",
            (
                "heartbeat.interval.ms",
                "session.timeout.ms",
                "record.lock.duration.ms",
                "delivery.count.limit",
                "partition.max.record.locks",
                "assignment.interval.ms",
            ),
        ),
        ("streams", ("heartbeat.interval.ms", "session.timeout.ms")),
    )
    for name in names
} | {
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
    "streams.assignment.interval.ms": (
        "group.streams.min.assignment.interval.ms",
        "group.streams.max.assignment.interval.ms",
    ),
    "streams.task.offset.interval.ms": ("group.streams.min.task.offset.interval.ms", None),
    "streams.num.warmup.replicas": (None, "group.streams.max.warmup.replicas"),
}
"""Broker keys with the lowest and the highest value of a key, in the order in which Kafka checks them."""

_COMMAS: Final = re.compile(r"\s*,\s*")


class GroupConfigs:
    """What coordinators and share partitions ask for; values change with the cluster's image."""

    def __init__(self, broker: BrokerConfig, holder: ImageHolder) -> None:
        self._broker = broker
        self._holder = holder

    def overrides(self, group_id: str) -> Mapping[str, str]:
        """The group's own values, as they were given."""
        return self._holder.current.overrides(ConfigResource(ConfigType.GROUP, group_id))

    def own(self, group_id: str, name: str) -> Value:
        """The group's own value within the broker's bounds; None where it has none."""
        text = self.overrides(group_id).get(name)
        if text is None:
            return None
        try:
            value = GROUP_KEYS[name].parse(text)
        except ConfigError:
            return None  # stored by a release with other rules: what is inherited counts
        if isinstance(value, int) and name in BOUNDS:
            low, high = _bounds(self._broker, name)
            value = value if low is None else max(low, value)
            value = value if high is None else min(high, value)
        return value

    def own_text(self, group_id: str, name: str) -> str | None:
        """The same as a text."""
        return format_value(self.own(group_id, name))

    def get(self, group_id: str, name: str) -> Value:
        """The typed value in force. Raises KeyError for a name that is no group key."""
        value = self.own(group_id, name)
        return inherited(self._broker, GROUP_KEYS[name]) if value is None else value

    def integer(self, group_id: str, name: str) -> int:
        """The value in force of a key that holds a number."""
        value = self.get(group_id, name)
        assert isinstance(value, int), name
        return value

    def shown(self, group_id: str) -> list[tuple[ConfigKey, str | None, list[Synonym]]]:
        """What DescribeConfigs lists: key, value, and all settings behind it, the effective one first.
        Internal keys only where they are set; their values as they were given.
        """
        overrides = self.overrides(group_id)
        found: list[tuple[ConfigKey, str | None, list[Synonym]]] = []
        for key in sorted(GROUP_KEYS.values(), key=lambda each: not each.internal):
            text = overrides.get(key.name)
            if text is None and key.internal:
                continue
            synonyms = self._behind(key)
            value = format_value(inherited(self._broker, key))
            if text is not None:
                value = text if key.internal else _plain(key, text)
                synonyms.insert(0, Synonym(key.name, value, ConfigSource.GROUP_CONFIG))
            found.append((key, value, synonyms))
        return found

    def _behind(self, key: ConfigKey) -> list[Synonym]:
        if key.broker_key:
            return self._broker.synonyms(key.broker_key)
        return [Synonym(key.name, format_value(key.default_value()), ConfigSource.DEFAULT_CONFIG)]


def _plain(key: ConfigKey, text: str) -> str | None:
    try:
        return format_value(key.parse(text))
    except ConfigError:
        return text


def inherited(broker: BrokerConfig, key: ConfigKey) -> Value:
    """The value of a group that has none of its own. Where a broker key lists what there is, its first entry
    is the default.
    """
    if not key.broker_key:
        return key.default_value()
    value = broker[key.broker_key]
    return value[0] if isinstance(value, tuple) and key.kind != "list" else value


def _bounds(broker: BrokerConfig, name: str) -> tuple[int | None, int | None]:
    low, high = BOUNDS[name]
    return None if low is None else broker.integer(low), None if high is None else broker.integer(high)


def validate(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Check all values that a group would have; raises ConfigError with Kafka's text for the first fault."""
    for name in overrides:
        if name not in GROUP_KEYS:
            raise ConfigError(f"Unknown group config name: {name}")
    tags = overrides.get(TAGS, "").strip()
    if tags and len(entries := _COMMAS.split(tags)) != len(set(entries)):
        raise ConfigError(f"{TAGS} must not contain duplicate tag keys.")
    values: dict[str, Value] = {}
    for key in GROUP_KEYS.values():
        if key.name in overrides:
            values[key.name] = value = key.parse(overrides[key.name])
            if key.name == RESET:
                _check_reset(str(value))
    for name in BOUNDS:
        _check_bounds(broker, name, values.get(name))
    assignors = broker.names(GROUP_KEYS[ASSIGNOR].broker_key)
    if ASSIGNOR in values and values[ASSIGNOR] not in assignors:
        raise ConfigError(
            f"{ASSIGNOR} '{values[ASSIGNOR]}' is not a registered task assignor. "
            f"Registered assignors are: [{', '.join(assignors)}]."
        )
    for kind in ("consumer", "share", "streams"):
        _check_session(broker, values, f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
    if str(values.get(DEAD_LETTERS) or "").startswith("__"):
        raise ConfigError(f"{DEAD_LETTERS}: DLQ topic name must not start with '__'")


def _check_reset(text: str) -> None:
    if text in ("earliest", "latest"):
        return
    try:
        if text.startswith(BY_DURATION):
            iso_duration_ms(text.removeprefix(BY_DURATION))
            return
    except ValueError:
        pass
    raise invalid(
        RESET,
        text,
        f"Invalid value `{text}` for configuration {RESET}. The value must be either 'earliest', 'latest' "
        "or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    )


def _check_bounds(broker: BrokerConfig, name: str, value: Value) -> None:
    if not isinstance(value, int):
        return
    low, high = _bounds(broker, name)
    if low is not None and high is not None:
        if not low <= value <= high:
            raise ConfigError(f"{name} must be in the range {low} to {high} inclusive.")
    elif low is not None and value < low:
        raise ConfigError(f"{name} must be greater than or equal to {low}")
    elif high is not None and value > high:
        raise ConfigError(f"{name} must be less than or equal to {high}")


def _check_session(broker: BrokerConfig, values: Mapping[str, Value], session: str, heartbeat: str) -> None:
    """The longer one must be longer, whichever of them the broker gives."""
    if session not in values and heartbeat not in values:
        return
    session_ms, heartbeat_ms = (
        values[name] if name in values else inherited(broker, GROUP_KEYS[name])
        for name in (session, heartbeat)
    )
    assert isinstance(session_ms, int)
    assert isinstance(heartbeat_ms, int)
    if session_ms <= heartbeat_ms:
        raise ConfigError(f"{session} must be greater than {heartbeat}")
