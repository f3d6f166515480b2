"""All configuration keys of Apache Kafka 3.9.2 and 4.4.0, typed.

Owns `BROKER_KEYS`, `TOPIC_KEYS` and `GROUP_KEYS`, built once from the tables of the sibling modules
`*_keys.py`, and the few `OWN_KEYS` that Kafka does not have.
A table has one key a line (an indented line goes on with the line before):

    broker:  name  type  default  mode        valid  era  internal
    topic:   name  type  default  broker-key  valid  era  internal   (groups the same)

`""` is the empty default, `null` none, `max` the type's greatest value; `-` leaves a column empty.
mode: `ro` only in the file, `broker` dynamic for one broker, `cluster` dynamic for one or all.
era: `<4` gone in 4.0, `4+` not in 3.9; where both releases know a key, 4.4.0 decides type and default.
`internal` keys are accepted and shown only when they are set, as Kafka does.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Final

from broker.config import (
    cluster_keys,
    coordination_keys,
    group_keys,
    log_keys,
    network_keys,
    own_keys,
    security_keys,
    topic_keys,
)
from broker.config.values import Value, check_value, parse_value

_GREATEST: Final = {"int": str((1 << 31) - 1), "long": str((1 << 63) - 1), "short": str((1 << 15) - 1)}
_WIRE_TYPES: Final = {
    "bool": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


@dataclass(slots=True, frozen=True)
class ConfigKey:
    """One key: its type, default text (None: unset), who may change it and what it takes."""

    name: str
    kind: str
    default: str | None
    mode: str
    broker_key: str
    valid: str
    era: str
    internal: bool

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.kind == "password"

    @property
    def dynamic(self) -> bool:
        """Whether a running broker takes a new value."""
        return self.mode != "ro"

    @property
    def wire_type(self) -> int:
        """The type number of DescribeConfigs v3+ (KIP-569)."""
        return _WIRE_TYPES[self.kind]

    def parse(self, text: str) -> Value:
        """Typed and checked value of a text; raises ConfigError."""
        value = parse_value(self.name, self.kind, text)
        check_value(self.name, self.valid, value)
        return value

    def default_value(self) -> Value:
        """Typed default; None when the key has none."""
        return None if self.default is None else parse_value(self.name, self.kind, self.default)


def _lines(table: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for line in table.splitlines():
        if line.startswith(" "):
            rows[-1].extend(line.split())
        elif line:
            rows.append(line.split())
    return rows


def _read(table: str, with_broker_key: bool, keys: dict[str, ConfigKey]) -> None:
    for row in _lines(table):
        name, kind, default, fourth, valid, era, internal = row + ["-"] * (7 - len(row))
        text: str | None = default
        if default == "null":
            text = None
        elif default == '""':
            text = ""
        elif default == "max":
            text = _GREATEST[kind]
        keys[name] = ConfigKey(
            name=name,
            kind=kind,
            default=text,
            mode="cluster" if with_broker_key else fourth,
            broker_key=fourth if with_broker_key and fourth != "-" else "",
            valid="" if valid == "-" else valid,
            era="" if era == "-" else era,
            internal=internal == "internal",
        )


def _broker_keys(*modules: ModuleType) -> dict[str, ConfigKey]:
    keys: dict[str, ConfigKey] = {}
    for module in modules:
        _read(module.TABLE, False, keys)
    return keys


def _keys_of(table: str) -> dict[str, ConfigKey]:
    keys: dict[str, ConfigKey] = {}
    _read(table, True, keys)
    return keys


BROKER_KEYS: Final = _broker_keys(cluster_keys, coordination_keys, log_keys, network_keys, security_keys)
TOPIC_KEYS: Final = _keys_of(topic_keys.TABLE)
GROUP_KEYS: Final = _keys_of(group_keys.TABLE)
OWN_KEYS: Final = _broker_keys(own_keys)

_FALLBACKS: Final = (
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
)
FALLBACK_NAMES: Final = {name: group for group in _FALLBACKS for name in group} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
UNIT_MS: Final = {
    "log.retention.minutes": 60_000,
    "log.retention.hours": 3_600_000,
    "log.roll.hours": 3_600_000,
    "log.roll.jitter.hours": 3_600_000,
}


def synonyms_of(name: str) -> tuple[str, ...]:
    """The broker keys that give a value, the strongest first; a listener's own key falls back to the
    plain one.
    """
    if name.startswith("listener.name."):
        return (name, base_name(name))
    return FALLBACK_NAMES.get(name, (name,))


def base_name(name: str) -> str:
    """`listener.name.<listener>.<key>` without its prefix (and without a SASL mechanism); other names
    as they are.
    """
    if not name.startswith("listener.name."):
        return name
    rest = name[len("listener.name.") :].partition(".")[2]
    if rest in BROKER_KEYS:
        return rest
    without_mechanism = rest.partition(".")[2]
    return without_mechanism if without_mechanism in BROKER_KEYS else rest


def find_broker_key(name: str) -> ConfigKey | None:
    """The definition of a broker key, listener-prefixed names included; None where there is none."""
    return BROKER_KEYS.get(name) or OWN_KEYS.get(name) or BROKER_KEYS.get(base_name(name))
