"""Which store a configuration asks for, and with what settings."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from broker.adapters.metadata_store import is_member, open_store, zookeeper_settings
from broker.config.broker_config import BrokerConfig
from broker.config.values import ConfigError
from replication.metadata.shared_sqlite_store import SharedSqliteStore
from replication.metadata.sqlite_store import SqliteStore
from replication.metadata.zookeeper_settings import ZookeeperSettings
from replication.metadata.zookeeper_store import ZookeeperStore
from runtime.system import production_env


def made(**keys):
    config = BrokerConfig({name.replace("_", "."): text for name, text in keys.items()})

    async def main():
        env = production_env(asyncio.get_running_loop())
        try:
            return open_store(config, env)
        finally:
            await env.aclose()

    return asyncio.run(main()), is_member(config)


def test_a_broker_that_names_no_cluster_is_alone(tmp_path):
    store, member = made(log_dirs=f"{tmp_path}/a,{tmp_path}/b")
    assert isinstance(store, SqliteStore)
    assert store._path == f"{tmp_path}/a/ottla-metadata.sqlite"
    assert not member


def test_brokers_of_one_machine_share_a_file_and_each_is_named_by_its_data_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store, member = made(log_dirs="data", ottla_cluster_file="m.sqlite")
    assert isinstance(store, SharedSqliteStore)
    assert (store._path, store._owner) == (f"{tmp_path}/m.sqlite", f"{tmp_path}/data")
    assert store.session_timeout_ms == 6_000
    assert member


def test_zookeeper_goes_before_a_file():
    store, member = made(zookeeper_connect="h:1/x", ottla_cluster_file="m.sqlite", log_dirs="d")
    assert isinstance(store, ZookeeperStore)
    assert store.session_timeout_ms == 18_000
    assert member


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
        {"zookeeper.connect": "h:port"},
        {"zookeeper.connect": "h", "zookeeper.set.acl": "true"},
        {"zookeeper.connect": "h", "ottla.zookeeper.digest": "nobody"},
    ],
)
def test_what_cannot_be_is_refused_with_the_keys_named(given):
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        zookeeper_settings(BrokerConfig(given))


def test_a_broker_that_is_alone_imports_nothing_of_clusters():
    code = (
        "import sys, broker.adapters.metadata_store; "
        "print([n for n in sys.modules if n.startswith('kazoo') or 'zookeeper' in n or 'shared_sqlite' in n])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
