"""Client metrics subscriptions (KIP-714): which metrics clients are to send, which clients, and how often.

A subscription is a resource of type 16 with a name of the administrator's choice and three keys. They are
kept and shown, though no client sends anything as long as the broker offers no telemetry.
"""

import re
from collections.abc import Mapping
from typing import Final

from broker.config.definitions import ConfigKey
from broker.config.values import ConfigError, parse_value
from protocol.errors import ErrorCode
from replication.metadata.configs import ConfigRefused

INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"
METRICS: Final = "metrics"

SHORTEST_INTERVAL_MS: Final = 100
LONGEST_INTERVAL_MS: Final = 3_600_000

SELECTORS: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
PATTERN_LENGTH_MAX: Final = 1024


def _key(name: str, kind: str, default: str) -> ConfigKey:
    return ConfigKey(name, kind, default, "cluster", "", "", "", False)


CLIENT_METRICS_KEYS: Final[dict[str, ConfigKey]] = {
    key.name: key
    for key in (
        _key(INTERVAL_MS, "int", "300000"),
        _key(MATCH, "list", ""),
        _key(METRICS, "list", ""),
    )
}


def validate(values: Mapping[str, str]) -> None:
    """Check all keys of a subscription. Raises ConfigRefused: 42 for an unknown key or an interval out of
    bounds, 40 for what cannot be read.
    """
    for name, text in values.items():
        key = CLIENT_METRICS_KEYS.get(name)
        if key is None:
            raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
        try:
            value = parse_value(name, key.kind, text)
        except ConfigError as error:
            raise ConfigRefused(ErrorCode.INVALID_CONFIG, str(error)) from error
        if isinstance(value, int) and not SHORTEST_INTERVAL_MS <= value <= LONGEST_INTERVAL_MS:
            raise ConfigRefused(
                ErrorCode.INVALID_REQUEST,
                f"Invalid value {value} for {name}, interval must be between {SHORTEST_INTERVAL_MS} and "
                f"{LONGEST_INTERVAL_MS} (1 hour)",
            )
        if name == MATCH and isinstance(value, tuple):
            for entry in value:
                _check_match(entry)


def _check_match(entry: str) -> None:
    """An entry is SELECTOR=PATTERN."""
    selector, *pattern = entry.split("=")
    if selector.strip() in SELECTORS and len(pattern) == 1 and len(pattern[0]) <= PATTERN_LENGTH_MAX:
        try:
            re.compile(pattern[0].strip())
            return
        except (re.error, RecursionError, OverflowError):
            pass
    raise ConfigRefused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {entry}")
