"""Rules between broker keys."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.checks import check_cross_key_rules, per_ip_limits
from broker.config.values import ConfigError


@pytest.mark.parametrize(
    ("static", "problem"),
    [
        ({"node.id": "1", "broker.id": "2"}, "same value as `broker.id`"),
        ({"broker.id.generation.enable": "false"}, "broker.id must be set"),
        ({"process.roles": "controller"}, "process.roles names no broker"),
        ({"log.retention.ms": "0"}, r"log.retention.ms must be unlimited \(-1\) or"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "at least 1MB per cleaner thread"),
        ({"log.cleaner.io.buffer.load.factor": "0"}, "load.factor must be greater than 0"),
        ({"replica.fetch.wait.max.ms": "31000"}, "replica.socket.timeout.ms should"),
        ({"offsets.topic.compression.codec": "5"}, "offsets.topic.compression.codec must be"),
        ({"group.max.session.timeout.ms": "5"}, "group.max.session.timeout.ms must not be below"),
        (
            {"group.share.delivery.count.limit": "2", "group.share.min.delivery.count.limit": "3"},
            "limit must be",
        ),
        ({"group.share.record.lock.duration.ms": "1000"}, "must be greater than or equal to group.share.min"),
        (
            {"group.share.max.share.sessions": "199"},
            "sessions must be greater than or equal to group.share.max",
        ),
        ({"max.connections.per.ip.overrides": "abc"}, "'abc' is not HOST:COUNT"),
    ],
)
def test_a_broken_rule_is_told(static: dict[str, str], problem: str) -> None:
    found = check_cross_key_rules(BrokerConfig(static))
    assert found
    with pytest.raises(ConfigError, match=problem):
        raise ConfigError(found[0])


def test_defaults_break_no_rule() -> None:
    assert check_cross_key_rules(BrokerConfig({})) == []


def test_limits_per_address() -> None:
    config = BrokerConfig({"max.connections.per.ip.overrides": "10.0.0.1:5, ::1:7,[fe80::2]:9"})
    assert per_ip_limits(config) == {"10.0.0.1": 5, "::1": 7, "fe80::2": 9}
