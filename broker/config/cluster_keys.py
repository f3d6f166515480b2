"""Broker keys of identity, replication, controllers, KRaft and ZooKeeper.

One key a line in the notation that definitions.py explains.
"""

TABLE = """
alter.config.policy.class.name class null ro
alter.config.policy.kraft.compatibility.enable bool false ro - <4
auto.create.topics.enable bool true ro
auto.leader.rebalance.enable bool true ro
broker.heartbeat.interval.ms int 2000 ro
broker.id int -1 ro
broker.id.generation.enable bool true ro - <4
broker.rack string null ro
broker.session.timeout.ms int 9000 ro
controlled.shutdown.enable bool true ro
controlled.shutdown.max.retries int 3 ro - <4
controlled.shutdown.retry.backoff.ms long 5000 ro - <4
controller.listener.names list null ro
controller.performance.always.log.threshold.ms long 2000 ro 0.. 4+ internal
controller.performance.sample.period.ms long 60000 ro 100.. 4+ internal
controller.quorum.append.linger.ms int 25 ro 0..
controller.quorum.auto.join.enable bool false ro - 4+
controller.quorum.bootstrap.servers list "" ro
controller.quorum.election.backoff.max.ms int 1000 ro 0..
controller.quorum.election.timeout.ms int 1000 ro 0..
controller.quorum.fetch.max.bytes int 1048576 ro 1.. 4+
controller.quorum.fetch.snapshot.max.bytes int 1048576 ro 1.. 4+
controller.quorum.fetch.timeout.ms int 2000 ro 0..
controller.quorum.request.timeout.ms int 2000 ro 0..
controller.quorum.retry.backoff.ms int 20 ro 0..
controller.quorum.voters list "" ro
controller.socket.timeout.ms int 30000 ro
create.topic.policy.class.name class null ro
default.replication.factor int 1 ro
delete.topic.enable bool true ro
eligible.leader.replicas.enable bool false ro - <4
initial.broker.registration.timeout.ms int 60000 ro
inter.broker.protocol.version string 3.9-IV0 ro release <4
internal.metadata.delete.delay.millis long 60000 ro - 4+ internal
internal.metadata.log.segment.bytes int null ro - 4+ internal
internal.metadata.max.batch.size.in.bytes int 8388608 ro - 4+ internal
leader.imbalance.check.interval.seconds long 300 ro 1..
leader.imbalance.per.broker.percentage int 10 ro - <4
metadata.log.dir string null ro
metadata.log.max.record.bytes.between.snapshots long 20971520 ro 1..
metadata.log.max.snapshot.interval.ms long 3600000 ro 0..
metadata.log.segment.bytes int 1073741824 ro 8388608..
metadata.log.segment.min.bytes int 8388608 ro 12.. <4 internal
metadata.log.segment.ms long 604800000 ro
metadata.max.idle.interval.ms int 500 ro 0..
metadata.max.retention.bytes long 104857600 ro
metadata.max.retention.ms long 604800000 ro
node.id int null ro 0..
num.partitions int 1 ro 1..
num.recovery.threads.per.data.dir int 2 cluster 1..
num.replica.alter.log.dirs.threads int null ro
num.replica.fetchers int 1 cluster 1..
process.roles list null ro {broker,controller}
replica.fetch.backoff.ms int 1000 ro 0..
replica.fetch.max.bytes int 1048576 ro 0..
replica.fetch.min.bytes int 1 ro
replica.fetch.response.max.bytes int 10485760 ro 0..
replica.fetch.wait.max.ms int 500 ro
replica.high.watermark.checkpoint.interval.ms long 5000 ro
replica.lag.time.max.ms long 30000 ro
replica.selector.class string null ro
replica.socket.receive.buffer.bytes int 65536 ro
replica.socket.timeout.ms int 30000 ro
reserved.broker.max.id int 1000 ro 0.. <4
server.max.startup.time.ms long max ro 0.. - internal
unclean.leader.election.enable bool false cluster
unclean.leader.election.interval.ms long 300000 ro 1.. - internal
unstable.api.versions.enable bool false ro - - internal
unstable.feature.versions.enable bool false ro - - internal
zookeeper.clientCnxnSocket string null ro - <4
zookeeper.connect string null ro - <4
zookeeper.connection.timeout.ms int null ro - <4
zookeeper.max.in.flight.requests int 10 ro 1.. <4
zookeeper.metadata.migration.enable bool false ro - <4
zookeeper.metadata.migration.min.batch.size int 200 ro 1.. <4 internal
zookeeper.session.timeout.ms int 18000 ro - <4
zookeeper.set.acl bool false ro - <4
zookeeper.ssl.cipher.suites list null ro - <4
zookeeper.ssl.client.enable bool false ro - <4
zookeeper.ssl.crl.enable bool false ro - <4
zookeeper.ssl.enabled.protocols list null ro - <4
zookeeper.ssl.endpoint.identification.algorithm string HTTPS ro - <4
zookeeper.ssl.keystore.location string null ro - <4
zookeeper.ssl.keystore.password password null ro - <4
zookeeper.ssl.keystore.type string null ro - <4
zookeeper.ssl.ocsp.enable bool false ro - <4
zookeeper.ssl.protocol string TLSv1.2 ro - <4
zookeeper.ssl.truststore.location string null ro - <4
zookeeper.ssl.truststore.password password null ro - <4
zookeeper.ssl.truststore.type string null ro - <4
"""
