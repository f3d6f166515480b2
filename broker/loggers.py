"""The broker's own loggers as DescribeConfigs and IncrementalAlterConfigs show them (KIP-412).

Owns the mapping between Kafka's level names and Python's. A change lasts until the broker stops, as in
Kafka. All loggers of the process are shown; `root` stands for the root logger.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from protocol.errors import ErrorCode
from replication.metadata.configs import AlterOperation, ConfigChange, ConfigRefused

ROOT: Final = "root"
_LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


class BrokerLoggers:
    """Reads and sets the levels of the process's loggers."""

    def __init__(self, manager: logging.Manager | None = None) -> None:
        self._manager = manager or logging.root.manager

    def levels(self) -> dict[str, str]:
        """The effective level of each logger, by name."""
        found = {ROOT: _name_of(self._manager.root.level)}
        for name in sorted(self._manager.loggerDict):
            logger = self._manager.loggerDict[name]
            if isinstance(logger, logging.Logger):
                found[name] = _name_of(logger.getEffectiveLevel())
        return found

    def check(self, changes: Sequence[ConfigChange]) -> None:
        """Refuse (ConfigRefused) changes that cannot be made; none of them is made here."""
        known = self.levels()
        for change in changes:
            if change.operation not in (AlterOperation.SET, AlterOperation.DELETE):
                raise ConfigRefused(
                    ErrorCode.INVALID_REQUEST,
                    f"{_operation_name(change.operation)} operation is not allowed for the BROKER_LOGGER "
                    "resource",
                )
            if change.key not in known:
                raise ConfigRefused(ErrorCode.INVALID_CONFIG, f"Logger {change.key} does not exist!")
            if change.operation == AlterOperation.DELETE:
                if change.key == ROOT:
                    raise ConfigRefused(
                        ErrorCode.INVALID_REQUEST,
                        f"Removing the log level of the {ROOT} logger is not allowed",
                    )
            elif change.value is None:
                raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {change.key}")
            elif change.value not in _LEVELS:
                raise ConfigRefused(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {change.key} to {change.value} as it is not a supported "
                    f"log level. Valid log levels are {', '.join(_LEVELS)}",
                )

    def alter(self, changes: Sequence[ConfigChange]) -> None:
        """Make changes that `check` let pass."""
        for change in changes:
            logger = self._manager.root if change.key == ROOT else self._manager.getLogger(change.key)
            logger.setLevel(
                _LEVELS[change.value or ""] if change.operation == AlterOperation.SET else logging.NOTSET
            )


def _operation_name(number: int) -> str:
    try:
        return str(AlterOperation(number).name)
    except ValueError:
        return f"Unknown operation {number}: this"


def _name_of(level: int) -> str:
    """The nearest of Kafka's levels at or above a Python level."""
    return next((name for name, value in _LEVELS.items() if level <= value), "FATAL")
