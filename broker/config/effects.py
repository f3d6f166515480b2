"""Which keys this broker acts on, which it refuses for now, and which it passes over.

Owns the three lists behind the promises of the configuration page: a set key that does nothing gives
one warning, a key that promises protection stops the start, KRaft's own keys are passed over with one
line. A key moves to EFFECTIVE with the change that makes it work.
"""

from typing import Final

from broker.config.definitions import base_name, find_broker_key
from broker.config.values import ConfigError, format_value, words

EFFECTIVE: Final = words(
    """
    advertised.listeners auto.create.topics.enable auto.leader.rebalance.enable broker.id
    broker.id.generation.enable broker.rack controlled.shutdown.enable controlled.shutdown.max.retries
    controlled.shutdown.retry.backoff.ms controller.socket.timeout.ms
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    connections.max.idle.ms cordoned.log.dirs default.replication.factor delete.topic.enable fetch.max.bytes
    follower.replication.throttled.rate
    group.consumer.assignment.interval.ms group.consumer.assignors group.consumer.heartbeat.interval.ms
    group.consumer.max.assignment.interval.ms group.consumer.max.heartbeat.interval.ms
    group.consumer.max.session.timeout.ms group.consumer.max.size group.consumer.migration.policy
    group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
    group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms
    group.consumer.session.timeout.ms group.coordinator.rebalance.protocols group.initial.rebalance.delay.ms
    group.max.session.timeout.ms group.max.size group.min.session.timeout.ms
    group.share.assignment.interval.ms group.share.delivery.count.limit group.share.heartbeat.interval.ms
    group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms
    group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
    group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
    group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
    group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
    group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
    group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
    group.share.partition.max.record.locks group.share.record.lock.duration.ms group.share.session.timeout.ms
    leader.replication.throttled.rate
    inter.broker.listener.name inter.broker.protocol.version
    leader.imbalance.check.interval.seconds leader.imbalance.per.broker.percentage
    listener.security.protocol.map listeners log.cleaner.backoff.ms
    log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms log.cleaner.enable
    log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second
    log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms
    log.cleaner.threads log.cleanup.policy log.dir log.dirs log.flush.interval.messages log.flush.interval.ms
    log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms
    log.index.interval.bytes log.index.size.max.bytes log.initial.task.delay.ms
    log.message.downconversion.enable log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
    log.message.timestamp.type log.preallocate log.retention.bytes log.retention.check.interval.ms
    log.retention.hours log.retention.minutes log.retention.ms log.roll.hours log.roll.jitter.hours
    log.roll.jitter.ms log.roll.ms
    log.segment.bytes log.segment.delete.delay.ms max.connections max.connections.per.ip
    max.connections.per.ip.overrides max.decompressed.message.bytes max.incremental.fetch.session.cache.slots
    max.request.partition.size.limit message.max.bytes metadata.log.dir min.insync.replicas node.id
    num.partitions num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
    offset.metadata.max.bytes offsets.commit.timeout.ms offsets.load.buffer.size
    offsets.retention.check.interval.ms offsets.retention.minutes offsets.topic.compression.codec
    offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes
    producer.id.expiration.check.interval.ms producer.id.expiration.ms
    replica.alter.log.dirs.io.max.bytes.per.second replica.fetch.backoff.ms replica.fetch.max.bytes
    replica.fetch.min.bytes replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
    replica.socket.timeout.ms request.timeout.ms
    reserved.broker.max.id security.inter.broker.protocol
    share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
    share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
    share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
    share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
    share.coordinator.state.topic.segment.bytes share.coordinator.write.timeout.ms socket.listen.backlog.size
    socket.receive.buffer.bytes socket.request.max.bytes socket.send.buffer.bytes
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
    transaction.partition.verification.enable transaction.remove.expired.transaction.cleanup.interval.ms
    transaction.state.log.load.buffer.size transaction.state.log.min.isr
    transaction.state.log.num.partitions transaction.state.log.replication.factor
    transaction.state.log.segment.bytes transactional.id.expiration.ms
    unclean.leader.election.enable zookeeper.clientCnxnSocket zookeeper.connect
    zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests zookeeper.session.timeout.ms
    zookeeper.set.acl zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.enabled.protocols
    zookeeper.ssl.endpoint.identification.algorithm zookeeper.ssl.keystore.location
    zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type zookeeper.ssl.protocol
    zookeeper.ssl.truststore.location zookeeper.ssl.truststore.type
    ottla.cluster.file ottla.cluster.session.timeout.ms ottla.zookeeper.digest
    """
)

_PROTECTING: Final = words(
    """
    allow.everyone.if.no.acl.found alter.config.policy.class.name authorizer.class.name
    client.quota.callback.class connections.max.reauth.ms create.topic.policy.class.name
    delegation.token.master.key delegation.token.secret.key
    max.connection.creation.rate principal.builder.class
    quota.consumer.default quota.producer.default
    security.inter.broker.protocol security.providers super.users zookeeper.ssl.crl.enable
    zookeeper.ssl.ocsp.enable
    """
)
_PROTECTING_PREFIXES: Final = ("ssl.", "sasl.", "authorizer.")

_KRAFT: Final = words(
    """
    broker.heartbeat.interval.ms broker.session.timeout.ms early.start.listeners
    initial.broker.registration.timeout.ms process.roles server.max.startup.time.ms
    """
)
_KRAFT_PREFIXES: Final = (
    "controller.listener.",
    "controller.performance.",
    "controller.quorum.",
    "internal.metadata.",
    "metadata.log.",
    "metadata.max.",
)


def is_kraft(name: str) -> bool:
    """Whether a key speaks only to Kafka's own metadata quorum."""
    return name not in EFFECTIVE and (name in _KRAFT or name.startswith(_KRAFT_PREFIXES))


def is_protecting(name: str) -> bool:
    """Whether a key promises encryption, authentication, authorisation, a policy or a quota."""
    plain = base_name(name)
    return plain in _PROTECTING or plain.startswith(_PROTECTING_PREFIXES)


def differs_from_default(name: str, text: str) -> bool:
    """Whether a text means something else than the key's default."""
    key = find_broker_key(name)
    if key is None:
        return True
    try:
        return format_value(key.parse(text)) != format_value(key.default_value())
    except ConfigError:
        return True
