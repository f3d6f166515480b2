"""Dynamic configuration values: whose they are, where they lie, and how one change set alters them.

The values are texts exactly as the client gave them; what a key means and which values it takes is the
business of broker/config, which the controller asks through `ConfigRules`.

Kafka names the resource types by number (ConfigResource.Type): 2 topic, 4 broker, 8 broker logger, 16 client
metrics, 32 group. A broker resource with an empty name means the default of all brokers. Client metrics and
groups have no folder in Kafka's ZooKeeper tree; ours lie in folders of their own next to it, under sanitized
names, since theirs may hold any characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from protocol.errors import ErrorCode
from replication.metadata import paths


class ConfigType(IntEnum):
    """Kinds of resources that have dynamic values, by their number on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


FOLDERS = {
    ConfigType.TOPIC: "topics",
    ConfigType.BROKER: "brokers",
    ConfigType.CLIENT_METRICS: "client-metrics",
    ConfigType.GROUP: "groups",
}


_SANITIZED = (ConfigType.CLIENT_METRICS, ConfigType.GROUP)


class ConfigResource(NamedTuple):
    """A topic, a broker (name is its id as text, or empty for the default of all), a group ..."""

    type: ConfigType
    name: str

    @property
    def path(self) -> str:
        """Where the values lie. Raises KeyError for a type that is not stored (loggers)."""
        name = paths.sanitize(self.name) if self.type in _SANITIZED else self.name
        return paths.config(FOLDERS[self.type], name or paths.DEFAULT_ENTITY)


def resource_at(path: str) -> ConfigResource | None:
    """The resource whose values lie at `path`, or None for paths of other kinds (clients, users, ips)."""
    parts = path.split("/")
    for kind, folder in FOLDERS.items():
        if len(parts) == 4 and parts[1] == "config" and parts[2] == folder:
            name = paths.desanitize(parts[3]) if kind in _SANITIZED else parts[3]
            return ConfigResource(kind, "" if parts[3] == paths.DEFAULT_ENTITY else name)
    return None


class ConfigRefused(Exception):
    """A key or value that is not taken. `error` is INVALID_CONFIG, INVALID_REQUEST ..."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


class ConfigRules(Protocol):
    """What the controller must know of keys and values; broker/config gives it."""

    def validate(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        """Check the whole set of overrides that the resource would have. Raises ConfigRefused."""

    def is_list(self, resource: ConfigResource, key: str) -> bool:
        """Whether the key holds a comma-separated list, which alone can be appended to and subtracted
        from.
        """

    def inherited(self, resource: ConfigResource, key: str) -> str | None:
        """The value in force where the resource has no override: what an append starts from."""


class AlterOperation(IntEnum):
    """What IncrementalAlterConfigs does to one key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(slots=True, frozen=True)
class ConfigChange:
    """One key of IncrementalAlterConfigs. `operation` is the number on the wire, known or not."""

    key: str
    operation: int
    value: str | None


def apply_changes(
    resource: ConfigResource, current: Mapping[str, str], changes: Sequence[ConfigChange], rules: ConfigRules
) -> dict[str, str]:
    """The overrides after all changes, none of them checked by `rules.validate` yet. Raises ConfigRefused."""
    seen: set[str] = set()
    values = dict(current)
    for change in changes:
        if change.key in seen:
            raise ConfigRefused(
                ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {change.key} is given twice"
            )
        seen.add(change.key)
        if change.operation not in AlterOperation.__members__.values():
            raise ConfigRefused(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown operation {change.operation}")
        _apply_one(resource, values, change, rules)
    return values


def _apply_one(
    resource: ConfigResource, values: dict[str, str], change: ConfigChange, rules: ConfigRules
) -> None:
    key, value = change.key, change.value
    if change.operation == AlterOperation.DELETE:
        values.pop(key, None)
        return
    if value is None:
        raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {key}")
    if change.operation == AlterOperation.SET:
        values[key] = value
        return
    if not rules.is_list(resource, key):
        verb = AlterOperation(change.operation).name
        raise ConfigRefused(
            ErrorCode.INVALID_CONFIG, f"Can't {verb} to key {key} because its type is not LIST."
        )
    held = values.get(key)
    if held is None:
        held = rules.inherited(resource, key) or ""
    before = [entry.strip() for entry in held.split(",") if entry.strip()]
    asked = [entry.strip() for entry in value.split(",") if entry.strip()]
    if change.operation == AlterOperation.APPEND:
        after = before + [entry for entry in dict.fromkeys(asked) if entry not in before]
    else:
        after = [entry for entry in before if entry not in asked]
    values[key] = ",".join(after)
