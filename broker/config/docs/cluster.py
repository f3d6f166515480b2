"""Texts on keys of brokers, controllers, replication and ZooKeeper, in the notation of the package."""

TABLE = """
alter.config.policy.class.name
    A class that is asked before configuration values change and may refuse.
alter.config.policy.kraft.compatibility.enable
    Whether the class of alter.config.policy.class.name is shown in ZooKeeper mode what it would be shown
    in KRaft mode.
auto.create.topics.enable
    Whether asking for a topic that does not exist creates it with the broker's defaults.
auto.leader.rebalance.enable
    Whether leadership is given back to preferred replicas from time to time.
broker.heartbeat.interval.ms
    KRaft only: how often a broker tells the controller that it is alive.
broker.id
    This broker's number in the cluster; -1 has one generated. node.id is its newer name.
broker.id.generation.enable
    Whether a broker without a number gets one above reserved.broker.max.id.
broker.rack
    The rack or zone this broker stands in. Replicas of a partition are spread over racks, and readers can be
    sent to one in theirs.
broker.session.timeout.ms
    KRaft only: after how long without a heartbeat a broker counts as gone.
controlled.shutdown.enable
    Whether a broker that is asked to stop first hands its leaderships to others.
controlled.shutdown.max.retries
    How often handing over leaderships is tried before the broker stops anyway.
controlled.shutdown.retry.backoff.ms
    The pause between two tries to hand over leaderships before the broker stops.
controller.listener.names
    KRaft only: the listeners of controllers, separated by commas; brokers use the first.
controller.performance.always.log.threshold.ms
    KRaft only: events of the controller that take longer than this are always logged.
controller.performance.sample.period.ms
    KRaft only: how often the controller's slowest events are summed up in the log.
controller.quorum.append.linger.ms
    KRaft only: how long the quorum's leader gathers records before it writes them.
controller.quorum.auto.join.enable
    KRaft only: whether a controller adds itself to the voters of the quorum.
controller.quorum.bootstrap.servers
    KRaft only: addresses at which the quorum of controllers is first looked for.
controller.quorum.election.backoff.max.ms
    KRaft only: the longest pause before another election after one without a winner.
controller.quorum.election.timeout.ms
    KRaft only: how long a candidate waits for votes before the election starts anew.
controller.quorum.fetch.max.bytes
    KRaft only: the most bytes of the metadata log in one answer.
controller.quorum.fetch.snapshot.max.bytes
    KRaft only: the most bytes of a metadata snapshot in one answer.
controller.quorum.fetch.timeout.ms
    KRaft only: how long a follower goes without an answer of the quorum's leader before it stands for
    election, and a leader without fetches of a majority before it resigns.
controller.quorum.request.timeout.ms
    KRaft only: how long a request within the quorum may take.
controller.quorum.retry.backoff.ms
    KRaft only: the pause before a failed request within the quorum is sent again.
controller.quorum.voters
    KRaft only: the fixed voters of the quorum, as id@host:port.
controller.socket.timeout.ms
    How long requests between controller and brokers may take on the socket.
create.topic.policy.class.name
    A class that is asked before topics are created and may refuse.
default.replication.factor
    How many replicas a topic gets that does not name a number.
delete.topic.enable
    Whether topics can be deleted. Without it every request to do so is refused.
eligible.leader.replicas.enable
    Whether replicas that left the in-sync set with complete data are remembered as possible leaders.
initial.broker.registration.timeout.ms
    KRaft only: how long a starting broker tries to register before it gives up.
inter.broker.protocol.version
    The release whose protocol brokers use among themselves, during an upgrade.
internal.metadata.delete.delay.millis
    KRaft only: how long dropped files of the metadata log stay on disk.
internal.metadata.log.segment.bytes
    KRaft only: size of segments of the metadata log, below the usual minimum; for tests.
internal.metadata.max.batch.size.in.bytes
    KRaft only: the largest batch of the metadata log; for tests.
leader.imbalance.check.interval.seconds
    How often it is checked whether leadership has strayed from the preferred replicas.
leader.imbalance.per.broker.percentage
    The share of strayed leaderships of one broker that starts a rebalance.
metadata.log.dir
    The directory of the cluster's metadata, unless that is in ZooKeeper; by default the first of log.dirs.
metadata.log.max.record.bytes.between.snapshots
    KRaft only: after how many bytes of records the next snapshot is made.
metadata.log.max.snapshot.interval.ms
    KRaft only: after how long the next snapshot is made if there is anything new.
metadata.log.segment.bytes
    KRaft only: the size at which a segment of the metadata log is closed.
metadata.log.segment.min.bytes
    KRaft only: lower bound of metadata.log.segment.bytes; for tests.
metadata.log.segment.ms
    KRaft only: the age at which a segment of the metadata log is closed.
metadata.max.idle.interval.ms
    KRaft only: how often the active controller writes an empty record when nothing happens; 0 for never.
metadata.max.retention.bytes
    KRaft only: how large metadata log and snapshots may grow before old ones are dropped.
metadata.max.retention.ms
    KRaft only: how long metadata log and snapshots are kept.
node.id
    This node's number, unique over brokers and controllers; takes the place of broker.id.
num.partitions
    How many partitions a topic gets that does not name a number.
num.recovery.threads.per.data.dir
    Threads for each log directory that load logs at the start and flush them at the stop.
num.replica.alter.log.dirs.threads
    Threads that move replicas between log directories; by default as many as there are directories.
num.replica.fetchers
    Threads for each source broker that copy partitions from their leaders.
process.roles
    KRaft only: whether the process is a broker, a controller or both. Empty means ZooKeeper mode.
replica.fetch.backoff.ms
    The pause before a follower fetches a partition again after an error.
replica.fetch.max.bytes
    The most bytes of one partition that a follower asks for; a larger first batch still comes whole.
replica.fetch.min.bytes
    How many bytes a follower's fetch waits for, up to replica.fetch.wait.max.ms.
replica.fetch.response.max.bytes
    The most bytes in one answer to a follower; a larger first batch still comes whole.
replica.fetch.wait.max.ms
    How long a follower's fetch waits for replica.fetch.min.bytes.
replica.high.watermark.checkpoint.interval.ms
    How often the broker notes down the high watermark of each partition.
replica.lag.time.max.ms
    How long a follower may be behind its leader before it leaves the in-sync replicas.
replica.selector.class
    A class that picks the replica a consumer reads from, for instance one in its rack; unset, the leader.
replica.socket.receive.buffer.bytes
    Receive buffer of a follower's connection to its leader; -1 keeps the system's default.
replica.socket.timeout.ms
    How long a follower's request may take on the socket; at least replica.fetch.wait.max.ms.
reserved.broker.max.id
    The greatest number that may be given in broker.id; generated ones lie above.
server.max.startup.time.ms
    KRaft only: how long a start may take before the process gives up.
unclean.leader.election.enable
    Whether a replica that is behind may become leader when no other is left, at the price of lost records.
unclean.leader.election.interval.ms
    KRaft only: how often the controller looks for partitions that only a replica which is behind can
    lead.
unstable.api.versions.enable
    Whether versions of requests that are still under development are offered.
unstable.feature.versions.enable
    Whether feature levels that are still under development can be chosen.
zookeeper.clientCnxnSocket
    ZooKeeper mode only: the client's socket class; TLS needs the one on Netty.
zookeeper.connect
    ZooKeeper mode only: addresses of ZooKeeper as host:port, then perhaps a path below which all data lies.
zookeeper.connection.timeout.ms
    ZooKeeper mode only: how long connecting may take; by default as long as the session.
zookeeper.max.in.flight.requests
    ZooKeeper mode only: how many requests are under way before the next one waits.
zookeeper.metadata.migration.enable
    Whether the cluster is on its way from ZooKeeper to KRaft.
zookeeper.metadata.migration.min.batch.size
    How many records at least are copied at a time on the way from ZooKeeper to KRaft.
zookeeper.session.timeout.ms
    ZooKeeper mode only: after how long without contact ZooKeeper takes a broker for gone.
zookeeper.set.acl
    ZooKeeper mode only: whether nodes are written so that only brokers may change them.
zookeeper.ssl.cipher.suites
    ZooKeeper mode only: cipher suites that may be used on TLS connections.
zookeeper.ssl.client.enable
    ZooKeeper mode only: whether to connect by TLS.
zookeeper.ssl.crl.enable
    ZooKeeper mode only: whether revocation lists of certificates are checked.
zookeeper.ssl.enabled.protocols
    ZooKeeper mode only: TLS versions that may be used.
zookeeper.ssl.endpoint.identification.algorithm
    ZooKeeper mode only: whether the server's certificate must name its host; empty does not check.
zookeeper.ssl.keystore.location
    ZooKeeper mode only: file with the client's key and certificate.
zookeeper.ssl.keystore.password
    ZooKeeper mode only: password of the key store.
zookeeper.ssl.keystore.type
    ZooKeeper mode only: format of the key store; unset, told by the file's name.
zookeeper.ssl.ocsp.enable
    ZooKeeper mode only: whether certificates are checked by OCSP.
zookeeper.ssl.protocol
    ZooKeeper mode only: TLS version with which a connection begins.
zookeeper.ssl.truststore.location
    ZooKeeper mode only: file with the certificates that are trusted.
zookeeper.ssl.truststore.password
    ZooKeeper mode only: password of the trust store.
zookeeper.ssl.truststore.type
    ZooKeeper mode only: format of the trust store; unset, told by the file's name.
"""
