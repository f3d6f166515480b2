"""Which metadata store a broker has: decided here and nowhere else, by its configuration.

`zookeeper.connect`: ZooKeeper, a cluster. `ottla.cluster.file`: one SQLite file that brokers of one machine
share, a cluster as well. Neither: a file of its own, a broker that is alone. What a broker does not use it
does not import.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from broker.config.broker_config import BrokerConfig
from replication.metadata.sqlite_store import FILE_NAME, SqliteStore

if TYPE_CHECKING:
    from replication.metadata.store import MetadataStore
    from runtime.system import Env


def is_member(config: BrokerConfig) -> bool:
    """Whether the broker is one of a cluster, and not alone."""
    return bool(config.text("zookeeper.connect").strip() or config.text("ottla.cluster.file").strip())


def open_store(config: BrokerConfig, env: Env) -> MetadataStore:
    """The store, which begins its session with `await store.open()`. Raises ConfigError."""
    if config.text("zookeeper.connect").strip():
        from broker.config.zookeeper import zookeeper_settings
        from runtime.last_will import LastWill
        from runtime.zookeeper_farewell import SCRIPT

        settings = zookeeper_settings(config)
        zookeeper = import_module("replication.metadata.zookeeper_store")
        will = None
        if settings.tls is None:  # the farewell speaks plainly
            will = LastWill(env.tasks, Path(SCRIPT))
        store: MetadataStore = zookeeper.ZookeeperStore(env.loop, env.clock, settings, will)
        return store
    if path := config.text("ottla.cluster.file").strip():
        shared = import_module("replication.metadata.shared_sqlite_store")
        # The lock on its data directory keeps a broker from running twice, so this names it.
        owner = os.path.abspath(config.log_dirs[0])
        timeout_ms = config.integer("ottla.cluster.session.timeout.ms")
        store = shared.SharedSqliteStore(env.loop, env.files, os.path.abspath(path), owner, timeout_ms)
        return store
    return SqliteStore(f"{config.metadata_dir}/{FILE_NAME}", env.run_blocking)
