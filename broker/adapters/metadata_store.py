"""Which metadata store a broker has: decided here and nowhere else, by its configuration.

`zookeeper.connect`: ZooKeeper, a cluster. `ottla.cluster.file`: one SQLite file that brokers of one machine
share, a cluster as well. Neither: a file of its own, a broker that is alone. What a broker does not use it
does not import.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from broker.config.broker_config import BrokerConfig
from broker.config.values import ConfigError
from replication.metadata.sqlite_store import FILE_NAME, SqliteStore

if TYPE_CHECKING:
    from replication.metadata.store import MetadataStore
    from replication.metadata.zookeeper_settings import ZookeeperSettings
    from runtime.system import Env


def is_member(config: BrokerConfig) -> bool:
    """Whether the broker is one of a cluster, and not alone."""
    return bool(config.text("zookeeper.connect").strip() or config.text("ottla.cluster.file").strip())


def open_store(config: BrokerConfig, env: Env) -> MetadataStore:
    """The store, which begins its session with `await store.open()`. Raises ConfigError."""
    if config.text("zookeeper.connect").strip():
        settings = zookeeper_settings(config)
        zookeeper = import_module("replication.metadata.zookeeper_store")
        store: MetadataStore = zookeeper.ZookeeperStore(env.loop, env.clock, settings)
        return store
    if path := config.text("ottla.cluster.file").strip():
        shared = import_module("replication.metadata.shared_sqlite_store")
        # The lock on its data directory keeps a broker from running twice, so this names it.
        owner = os.path.abspath(config.log_dirs[0])
        timeout_ms = config.integer("ottla.cluster.session.timeout.ms")
        store = shared.SharedSqliteStore(env.loop, env.files, os.path.abspath(path), owner, timeout_ms)
        return store
    return SqliteStore(f"{config.metadata_dir}/{FILE_NAME}", env.run_blocking)


def zookeeper_settings(config: BrokerConfig) -> ZookeeperSettings:
    """What the keys of ZooKeeper say together. Raises ConfigError."""
    from replication.metadata.zookeeper_settings import ZookeeperSettings, split_connect

    session_timeout_ms = config.integer("zookeeper.session.timeout.ms")
    try:
        hosts, chroot = split_connect(config.text("zookeeper.connect"))
        return ZookeeperSettings(
            hosts=hosts,
            chroot=chroot,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=(
                config.optional_integer("zookeeper.connection.timeout.ms") or session_timeout_ms
            ),
            max_in_flight=config.integer("zookeeper.max.in.flight.requests"),
            digest=config.text("ottla.zookeeper.digest") or None,
            secure=config.flag("zookeeper.set.acl"),
        )
    except ValueError as error:
        raise ConfigError(
            f"{error} (zookeeper.connect, zookeeper.set.acl, ottla.zookeeper.digest)"
        ) from error
