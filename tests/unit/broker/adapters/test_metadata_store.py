"""Which store a configuration asks for, and with what settings."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

from broker.adapters.metadata_store import is_member, open_store
from broker.config.broker_config import BrokerConfig
from replication.metadata.shared_sqlite_store import SharedSqliteStore
from replication.metadata.sqlite_store import SqliteStore
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


def test_a_broker_that_is_alone_imports_nothing_of_clusters():
    code = (
        "import sys, broker.adapters.metadata_store; "
        "print([n for n in sys.modules if n.startswith('kazoo') or 'zookeeper' in n or 'shared_sqlite' in n])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
