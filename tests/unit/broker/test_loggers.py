"""Levels of loggers under Kafka's names."""

from __future__ import annotations

import logging

import pytest

from broker.loggers import BrokerLoggers
from replication.metadata.configs import ConfigChange, ConfigRefused

SET, DELETE = 0, 1


@pytest.fixture
def manager() -> logging.Manager:
    """A tree of loggers of its own."""
    root = logging.RootLogger(logging.WARNING)
    found = logging.Manager(root)
    found.loggerClass = None
    found.getLogger("a.b")
    return found


def test_effective_levels_by_name(manager: logging.Manager) -> None:
    loggers = BrokerLoggers(manager)
    manager.getLogger("c").setLevel(15)
    manager.getLogger("d").setLevel(99)
    levels = loggers.levels()
    assert next(iter(levels)) == "root"
    assert (levels["root"], levels["c"], levels["d"]) == ("WARN", "INFO", "FATAL")


def test_changes(manager: logging.Manager) -> None:
    loggers = BrokerLoggers(manager)
    changes = [ConfigChange("a.b", SET, "TRACE"), ConfigChange("root", SET, "FATAL")]
    loggers.check(changes)
    loggers.alter(changes)
    assert manager.getLogger("a.b").level == 5
    assert manager.root.level == logging.CRITICAL
    loggers.alter([ConfigChange("a.b", DELETE, None)])
    assert manager.getLogger("a.b").level == logging.NOTSET


def test_an_unknown_operation_is_refused(manager: logging.Manager) -> None:
    with pytest.raises(ConfigRefused, match="Unknown operation 9"):
        BrokerLoggers(manager).check([ConfigChange("root", 9, "INFO")])
