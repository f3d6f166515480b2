"""Broker keys of listeners, connections, request limits, metrics and quota windows.

One key a line in the notation that definitions.py explains.
"""

TABLE = """
advertised.listeners list null ro
alter.log.dirs.replication.quota.window.num int 11 ro 1..
alter.log.dirs.replication.quota.window.size.seconds int 1 ro 1..
auto.include.jmx.reporter bool true ro - <4
background.threads int 10 cluster 1..
client.quota.callback.class class null ro
config.providers list "" cluster - 4+
connections.max.idle.ms long 600000 ro
control.plane.listener.name string null ro - <4
controller.quota.window.num int 11 ro 1..
controller.quota.window.size.seconds int 1 ro 1..
delete.records.purgatory.purge.interval.requests int 1 ro
early.start.listeners list null ro
fetch.max.bytes int 57671680 ro 1024..
fetch.purgatory.purge.interval.requests int 1000 ro
follower.replication.throttled.rate long max cluster 0.. 4+ internal
inter.broker.listener.name string null ro
kafka.metrics.polling.interval.secs int 10 ro 1..
kafka.metrics.reporters list "" ro
leader.replication.throttled.rate long max cluster 0.. 4+ internal
listener.security.protocol.map string
    SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT broker
listeners list PLAINTEXT://:9092 broker
max.connection.creation.rate int max cluster 0..
max.connections int max cluster 0..
max.connections.per.ip int max cluster 0..
max.connections.per.ip.overrides string "" cluster
max.incremental.fetch.session.cache.slots int 1000 ro 0..
max.request.partition.size.limit int 2000 ro 1..
metric.reporters list org.apache.kafka.common.metrics.JmxReporter cluster
metrics.num.samples int 2 ro 1..
metrics.recording.level string INFO ro
metrics.sample.window.ms long 30000 ro 1..
num.io.threads int 8 cluster 1..
num.network.threads int 3 cluster 1..
producer.purgatory.purge.interval.requests int 1000 ro
queued.max.request.bytes long -1 ro
queued.max.requests int 500 ro 1..
quota.window.num int 11 ro 1..
quota.window.size.seconds int 1 ro 1..
replica.alter.log.dirs.io.max.bytes.per.second long max cluster 0.. 4+ internal
replication.quota.window.num int 11 ro 1..
replication.quota.window.size.seconds int 1 ro 1..
request.timeout.ms int 30000 ro
socket.connection.setup.timeout.max.ms long 30000 ro
socket.connection.setup.timeout.ms long 10000 ro
socket.listen.backlog.size int 50 ro 1..
socket.receive.buffer.bytes int 102400 ro
socket.request.max.bytes int 104857600 ro 1..
socket.send.buffer.bytes int 102400 ro
telemetry.max.bytes int 1048576 ro 1..
"""
