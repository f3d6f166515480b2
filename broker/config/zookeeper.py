"""What the keys of ZooKeeper say together; checked at the start, before anything is opened."""

from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.values import ConfigError
from replication.metadata.zookeeper_settings import ZookeeperSettings, split_connect
from runtime.client_tls import VERSIONS, ClientTls

_OLDEST_PROTOCOL: Final = (3, 4)
_NETTY: Final = "org.apache.zookeeper.ClientCnxnSocketNetty"


def zookeeper_settings(config: BrokerConfig) -> ZookeeperSettings:
    """Of a configuration that sets `zookeeper.connect`. Raises ConfigError."""
    session_timeout_ms = config.integer("zookeeper.session.timeout.ms")
    connection_timeout_ms = config.optional_integer("zookeeper.connection.timeout.ms")
    _check_protocol(config.text("inter.broker.protocol.version"))
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
            tls=_tls(config),
        )
    except ValueError as error:
        raise ConfigError(
            f"zookeeper.set.acl, ottla.zookeeper.digest and zookeeper.ssl.keystore.location: {error}"
        ) from error


def _check_protocol(release: str) -> None:
    """From 3.4 on controllers speak one and the same protocol to brokers."""
    major, minor = (int(part) for part in release.partition("-")[0].split(".")[:2])
    if (major, minor) < _OLDEST_PROTOCOL:
        raise ConfigError(
            f"inter.broker.protocol.version={release}: this broker speaks that of 3.4 to 3.9 only. Raise it "
            "on all brokers of the cluster first."
        )


def _tls(config: BrokerConfig) -> ClientTls | None:
    if not config.flag("zookeeper.ssl.client.enable"):
        return None
    socket = config.text("zookeeper.clientCnxnSocket")
    if socket and socket != _NETTY:
        raise ConfigError(
            f"zookeeper.ssl.client.enable=true goes with zookeeper.clientCnxnSocket={_NETTY}, "
            f"not with {socket}."
        )
    tls = ClientTls(
        key_store=_pem(config, "zookeeper.ssl.keystore.location", "zookeeper.ssl.keystore.type"),
        key_password=config.text("zookeeper.ssl.keystore.password") or None,
        trust_store=_pem(config, "zookeeper.ssl.truststore.location", "zookeeper.ssl.truststore.type"),
        check_host_name=_checks_host_name(config),
        versions=_versions(config),
        ciphers=":".join(config.names("zookeeper.ssl.cipher.suites")) or None,
    )
    try:
        tls.context()
    except OSError as error:
        raise ConfigError(
            f"The files that zookeeper.ssl.keystore and zookeeper.ssl.truststore name cannot be used: {error}"
        ) from error
    return tls


def _pem(config: BrokerConfig, key: str, kind_key: str) -> str | None:
    """Where a store lies; its kind is told, or shows by the end of its name, as for ZooKeeper."""
    location = config.text(key)
    if not location:
        return None
    kind = config.text(kind_key) or location.rpartition(".")[2]
    if kind.upper() != "PEM":
        raise ConfigError(
            f"{key}={location} is no PEM file, and other kinds cannot be read here. Convert it with "
            f"keytool -importkeystore (to PKCS12) and openssl pkcs12, and set {kind_key}=PEM."
        )
    return location


def _checks_host_name(config: BrokerConfig) -> bool:
    algorithm = config.text("zookeeper.ssl.endpoint.identification.algorithm")
    if algorithm.upper() not in ("", "HTTPS"):
        raise ConfigError(
            f"zookeeper.ssl.endpoint.identification.algorithm={algorithm} is neither HTTPS nor empty."
        )
    return bool(algorithm)


def _versions(config: BrokerConfig) -> tuple[str, ...]:
    """Both where none is named: Kafka's default is TLSv1.2, of which ZooKeeper 3.9 has come off."""
    key = "zookeeper.ssl.enabled.protocols"
    names = config.names(key)
    if not names and config.is_set("zookeeper.ssl.protocol"):
        key = "zookeeper.ssl.protocol"
        names = (config.text(key),)
    if unknown := [name for name in names if name not in VERSIONS]:
        raise ConfigError(f"{key} names {', '.join(unknown)}; {' and '.join(VERSIONS)} can be spoken.")
    return names or tuple(VERSIONS)
