"""Rules between broker keys that Kafka checks at start and on each dynamic change."""

from broker.config.broker_config import BrokerConfig
from broker.config.group_bounds import broken_orders
from broker.config.values import ConfigError

CODECS = range(5)  # none, gzip, snappy, lz4, zstd


def check_cross_key_rules(config: BrokerConfig) -> list[str]:
    """Texts of all rules that the configuration breaks; empty when it is sound."""
    problems: list[str] = []
    node_id = config.optional_integer("node.id")
    broker_id = config.integer("broker.id")
    if node_id is not None and node_id >= 0 and 0 <= broker_id != node_id:
        problems.append(f"You must set `node.id` to the same value as `broker.id` ({node_id}, {broker_id}).")
    if config.configured_node_id is None and not config.flag("broker.id.generation.enable"):
        problems.append("broker.id must be set, because broker.id.generation.enable=false")
    roles = config.names("process.roles")
    if roles and "broker" not in roles:
        problems.append("process.roles names no broker: a node that is only a controller is not needed here")
    if config.duration_ms("log.retention.ms") == 0:
        problems.append("log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    if config.number("log.cleaner.io.buffer.load.factor") <= 0:
        problems.append("log.cleaner.io.buffer.load.factor must be greater than 0")
    threads = max(1, config.integer("log.cleaner.threads"))
    if config.integer("log.cleaner.dedupe.buffer.size") // threads <= 1 << 20:
        problems.append("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.")
    if config.integer("replica.fetch.wait.max.ms") > config.integer("replica.socket.timeout.ms"):
        problems.append("replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms")
    if config.integer("replica.fetch.wait.max.ms") > config.integer("replica.lag.time.max.ms"):
        problems.append("replica.fetch.wait.max.ms should be at most replica.lag.time.max.ms")
    if config.integer("group.max.session.timeout.ms") < config.integer("group.min.session.timeout.ms"):
        problems.append("group.max.session.timeout.ms must not be below group.min.session.timeout.ms")
    if config.integer("offsets.commit.timeout.ms") <= 0:
        problems.append("offsets.commit.timeout.ms must be above 0")
    if config.integer("offsets.topic.compression.codec") not in CODECS:
        problems.append("offsets.topic.compression.codec must be a codec's number, 0 to 4")
    problems += broken_orders(config)
    try:
        per_ip_limits(config)
        if config.text("zookeeper.connect").strip():
            from broker.config.zookeeper import zookeeper_settings

            zookeeper_settings(config)
    except ConfigError as error:
        problems.append(str(error))
    return problems


def per_ip_limits(config: BrokerConfig) -> dict[str, int]:
    """`max.connections.per.ip.overrides` as host to limit; raises ConfigError."""
    limits: dict[str, int] = {}
    text = config.text("max.connections.per.ip.overrides")
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = item.rpartition(":")
        if not host or not count.strip().isdigit():
            raise ConfigError(f"max.connections.per.ip.overrides: '{item}' is not HOST:COUNT")
        limits[host.strip().strip("[]")] = int(count)
    return limits
