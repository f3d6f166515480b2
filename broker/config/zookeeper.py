"""What the keys of ZooKeeper say together; checked at the start, before anything is opened."""

from broker.config.broker_config import BrokerConfig
from broker.config.values import ConfigError
from replication.metadata.zookeeper_settings import ZookeeperSettings, split_connect


def zookeeper_settings(config: BrokerConfig) -> ZookeeperSettings:
    """Of a configuration that sets `zookeeper.connect`. Raises ConfigError."""
    session_timeout_ms = config.integer("zookeeper.session.timeout.ms")
    connection_timeout_ms = config.optional_integer("zookeeper.connection.timeout.ms")
    try:
        hosts, chroot = split_connect(config.text("zookeeper.connect"))
    except ValueError as error:
        raise ConfigError(f"zookeeper.connect: {error}") from error
    try:
        return ZookeeperSettings(
            hosts=hosts,
            chroot=chroot,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=connection_timeout_ms or session_timeout_ms,
            max_in_flight=config.integer("zookeeper.max.in.flight.requests"),
            digest=config.text("ottla.zookeeper.digest") or None,
            secure=config.flag("zookeeper.set.acl"),
        )
    except ValueError as error:
        raise ConfigError(f"zookeeper.set.acl and ottla.zookeeper.digest: {error}") from error
