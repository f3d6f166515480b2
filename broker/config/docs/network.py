"""Texts on keys of listeners, connections, request limits, metrics and quota windows, in the notation of the
package.
"""

TABLE = """
advertised.listeners
    The addresses that clients are told to connect to, one for each listener; by default those of listeners.
    Set it where clients reach the broker under another name or port.
alter.log.dirs.replication.quota.window.num
    How many samples the rate of moves between log directories is averaged over.
alter.log.dirs.replication.quota.window.size.seconds
    Length of one sample of the rate of moves between log directories.
auto.include.jmx.reporter
    Whether metrics are reported by JMX even if metric.reporters does not name that reporter.
background.threads
    Threads for work that no request waits for, such as deleting files.
client.quota.callback.class
    A class that decides which quota applies to a connection, in place of the built-in rules.
config.providers
    Aliases of providers that resolve variables inside other values, separated by commas.
connections.max.idle.ms
    After how long without traffic a connection is closed.
control.plane.listener.name
    The listener on which brokers take the controller's requests, apart from those of clients.
controller.quota.window.num
    How many samples the rate of topic and partition changes is averaged over.
controller.quota.window.size.seconds
    Length of one sample of the rate of topic and partition changes.
delete.records.purgatory.purge.interval.requests
    After how many answered record deletions the table of waiting ones is swept.
early.start.listeners
    Listeners that take connections while the authorizer is still loading.
fetch.max.bytes
    The most bytes of records that one answer to a fetch holds. The first batch is sent whole even above it.
fetch.purgatory.purge.interval.requests
    After how many answered fetches the table of waiting ones is swept.
follower.replication.throttled.rate
    Bytes per second at which this broker fetches throttled replicas from their leaders.
inter.broker.listener.name
    The listener through which brokers talk to each other; not together with
    security.inter.broker.protocol.
kafka.metrics.polling.interval.secs
    How often the reporters of kafka.metrics.reporters collect their numbers.
kafka.metrics.reporters
    Classes that report the broker's Yammer metrics.
leader.replication.throttled.rate
    Bytes per second at which this broker serves throttled replicas of partitions that it leads.
listener.security.protocol.map
    Which security protocol each listener name stands for, as NAME:PROTOCOL pairs. Names that are not
    protocols themselves must be in it.
listeners
    The addresses the broker listens on, as NAME://host:port; an empty host means all interfaces.
max.connection.creation.rate
    The most new connections per second; beyond it the broker waits before it accepts more. Can be set for
    single listeners.
max.connections
    The most connections at a time; a listener at its own limit stops accepting, the broker at its limit
    closes an idle connection.
max.connections.per.ip
    The most connections at a time from one address; more are closed at once.
max.connections.per.ip.overrides
    Limits for single hosts or addresses in place of max.connections.per.ip, as host:count pairs.
max.incremental.fetch.session.cache.slots
    How many fetch sessions are remembered; clients without one send every partition with every fetch.
max.request.partition.size.limit
    The most partitions in one answer to a request that describes topics page by page.
metric.reporters
    Classes that are told of every metric.
metrics.num.samples
    How many samples a rate or an average is computed over.
metrics.recording.level
    The lowest level of metrics that is recorded: INFO, DEBUG or TRACE.
metrics.sample.window.ms
    Length of one sample of a rate or an average.
num.io.threads
    Threads that work on requests, disk access included.
num.network.threads
    Threads that move requests and answers between the network and the request queue, for each listener.
producer.purgatory.purge.interval.requests
    After how many answered writes the table of waiting ones is swept.
queued.max.request.bytes
    The most bytes of requests that wait to be worked on before no more are read; -1 sets no limit.
queued.max.requests
    The most requests that wait to be worked on before no more are read.
quota.window.num
    How many samples the rates of client quotas are averaged over.
quota.window.size.seconds
    Length of one sample of the rates of client quotas.
replica.alter.log.dirs.io.max.bytes.per.second
    Bytes per second at which replicas are moved between directories of this broker.
replication.quota.window.num
    How many samples the rate of throttled replication is averaged over.
replication.quota.window.size.seconds
    Length of one sample of the rate of throttled replication.
request.timeout.ms
    How long a request between brokers may take before it is sent again or given up.
socket.connection.setup.timeout.max.ms
    The longest that one attempt to connect may take; attempts grow towards it.
socket.connection.setup.timeout.ms
    How long the first attempt to connect may take.
socket.listen.backlog.size
    How many connections the system holds until the broker accepts them.
socket.receive.buffer.bytes
    Receive buffer of server sockets; -1 keeps the system's default.
socket.request.max.bytes
    The largest request that is read; a connection that announces a larger one is closed.
socket.send.buffer.bytes
    Send buffer of server sockets; -1 keeps the system's default.
telemetry.max.bytes
    The largest compressed push of client metrics that is accepted.
"""
