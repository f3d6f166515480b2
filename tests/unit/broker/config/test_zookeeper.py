"""The keys of ZooKeeper together."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.load import load_config
from broker.config.values import ConfigError
from broker.config.zookeeper import zookeeper_settings
from replication.metadata.zookeeper_settings import ZookeeperSettings


def test_settings_of_zookeeper_are_those_of_kafkas_keys():
    plain = zookeeper_settings(BrokerConfig({"zookeeper.connect": "a,b:2/c"}))
    assert plain == ZookeeperSettings("a,b:2", "/c", 18_000, 18_000, 10)
    given = {
        "zookeeper.connect": "a",
        "zookeeper.session.timeout.ms": "2000",
        "zookeeper.max.in.flight.requests": "3",
        "ottla.zookeeper.digest": "u:p",
        "zookeeper.set.acl": "true",
    }
    assert zookeeper_settings(BrokerConfig(given)) == ZookeeperSettings("a", "", 2000, 2000, 3, "u:p", True)
    timeout = {"zookeeper.connection.timeout.ms": "500"}
    assert zookeeper_settings(BrokerConfig(given | timeout)).connection_timeout_ms == 500


@pytest.mark.parametrize(
    "given",
    [
        "zookeeper.connect=h:port",
        "zookeeper.connect=h\nzookeeper.set.acl=true",
        "zookeeper.connect=h\nottla.zookeeper.digest=nobody",
    ],
)
def test_what_cannot_be_stops_the_start_with_the_key_named(given):
    with pytest.raises(ConfigError, match=r"zookeeper\.(connect|set\.acl)"):
        load_config(given)
