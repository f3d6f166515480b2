"""Broker keys of group, share, streams and transaction coordination and of producer ids.

One key a line in the notation that definitions.py explains.
"""

TABLE = """
add.partitions.to.txn.retry.backoff.max.ms int 100 ro 0.. 4+
add.partitions.to.txn.retry.backoff.ms int 20 ro 1.. 4+
errors.deadletterqueue.auto.create.topics.enable bool false cluster - 4+
errors.deadletterqueue.topic.name.prefix string dlq. cluster - 4+
group.consumer.assignment.interval.ms int 1000 cluster 0.. 4+
group.consumer.assignor.offload.enable bool true ro - 4+ internal
group.consumer.assignors list uniform,range ro
group.consumer.heartbeat.interval.ms int 5000 ro 1..
group.consumer.max.assignment.interval.ms int 15000 ro 0.. 4+
group.consumer.max.heartbeat.interval.ms int 15000 ro 1..
group.consumer.max.session.timeout.ms int 60000 ro 1..
group.consumer.max.size int max ro 1..
group.consumer.migration.policy string bidirectional ro ~{DISABLED,DOWNGRADE,UPGRADE,BIDIRECTIONAL} 4+
group.consumer.min.assignment.interval.ms int 0 ro 0.. 4+
group.consumer.min.heartbeat.interval.ms int 5000 ro 1..
group.consumer.min.session.timeout.ms int 45000 ro 1..
group.consumer.regex.refresh.interval.ms int 600000 ro 10000.. 4+ internal
group.consumer.session.timeout.ms int 45000 ro 1..
group.coordinator.append.linger.ms int -1 ro -1..
group.coordinator.background.threads int 2 ro 1.. 4+
group.coordinator.cached.buffer.max.bytes int 1048588 cluster 524288.. 4+
group.coordinator.new.enable bool false ro - <4 internal
group.coordinator.rebalance.protocols list classic,consumer,streams ro {consumer,classic,share,streams}
group.coordinator.threads int 4 ro 1..
group.initial.rebalance.delay.ms int 3000 ro
group.max.session.timeout.ms int 1800000 ro
group.max.size int max ro 1..
group.min.session.timeout.ms int 6000 ro
group.share.assignment.interval.ms int 1000 cluster 0.. 4+
group.share.assignor.offload.enable bool true ro - 4+ internal
group.share.assignors list simple ro - 4+
group.share.delivery.count.limit int 5 ro 2..10
group.share.dlq.manager.class.name string org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager ro -
    4+ internal
group.share.enable bool false ro - <4 internal
group.share.heartbeat.interval.ms int 5000 ro 1..
group.share.initialize.retry.interval.ms int 30000 ro 1.. 4+ internal
group.share.max.assignment.interval.ms int 15000 ro 0.. 4+
group.share.max.delivery.count.limit int 10 ro 5..25 4+
group.share.max.groups short 10 ro 1..100 <4
group.share.max.heartbeat.interval.ms int 15000 ro 1..
group.share.max.partition.max.record.locks int 4000 ro 2000..10000 4+
group.share.max.record.lock.duration.ms int 60000 ro 30000..3600000
group.share.max.session.timeout.ms int 60000 ro 1..
group.share.max.share.sessions int 2000 ro 1.. 4+
group.share.max.size int 200 ro 1..1000
group.share.min.assignment.interval.ms int 0 ro 0.. 4+
group.share.min.delivery.count.limit int 2 ro 2..5 4+
group.share.min.heartbeat.interval.ms int 5000 ro 1..
group.share.min.partition.max.record.locks int 100 ro 100..2000 4+
group.share.min.record.lock.duration.ms int 15000 ro 1000..30000
group.share.min.session.timeout.ms int 45000 ro 1..
group.share.partition.max.record.locks int 2000 ro 100..10000
group.share.persister.class.name string org.apache.kafka.server.share.persister.DefaultStatePersister ro -
    4+ internal
group.share.record.lock.duration.ms int 30000 ro 1000..3600000
group.share.session.timeout.ms int 45000 ro 1..
group.streams.acceptable.recovery.lag long 10000 ro 0.. 4+ internal
group.streams.assignment.interval.ms int 1000 cluster 0.. 4+
group.streams.assignor.offload.enable bool true ro - 4+ internal
group.streams.assignors list sticky ro - 4+
group.streams.heartbeat.interval.ms int 5000 ro 1.. 4+
group.streams.initial.rebalance.delay.ms int 3000 ro 0.. 4+
group.streams.max.assignment.interval.ms int 15000 ro 0.. 4+
group.streams.max.heartbeat.interval.ms int 15000 ro 1.. 4+
group.streams.max.session.timeout.ms int 60000 ro 1.. 4+
group.streams.max.size int max ro 1.. 4+
group.streams.max.standby.replicas int 2 ro 0.. 4+
group.streams.max.warmup.replicas int 20 ro 0.. 4+ internal
group.streams.min.assignment.interval.ms int 0 ro 0.. 4+
group.streams.min.heartbeat.interval.ms int 5000 ro 1.. 4+
group.streams.min.session.timeout.ms int 45000 ro 1.. 4+
group.streams.min.task.offset.interval.ms int 15000 ro 1.. 4+ internal
group.streams.num.standby.replicas int 0 ro 0.. 4+
group.streams.num.warmup.replicas int 2 ro 0.. 4+ internal
group.streams.rack.aware.assignment.tags list "" ro - 4+
group.streams.session.timeout.ms int 45000 ro 1.. 4+
group.streams.task.offset.interval.ms int 60000 ro 1.. 4+ internal
group.streams.topology.description.plugin.class class null ro - 4+
offset.metadata.max.bytes int 4096 ro
offsets.commit.required.acks short -1 ro - <4
offsets.commit.timeout.ms int 5000 ro 1..
offsets.load.buffer.size int 5242880 ro 1..
offsets.retention.check.interval.ms long 600000 ro 1..
offsets.retention.minutes int 10080 ro 1..
offsets.topic.compression.codec int 0 ro
offsets.topic.num.partitions int 50 ro 1..
offsets.topic.replication.factor short 3 ro 1..
offsets.topic.segment.bytes int 104857600 ro 1..
producer.id.expiration.check.interval.ms int 600000 ro 1.. - internal
producer.id.expiration.ms int 86400000 cluster 1..
share.coordinator.append.linger.ms int -1 ro -1.. 4+
share.coordinator.cached.buffer.max.bytes int 1048588 cluster 524288.. 4+
share.coordinator.cold.partition.snapshot.interval.ms int 300000 ro 1.. 4+ internal
share.coordinator.load.buffer.size int 5242880 ro 1.. 4+
share.coordinator.snapshot.update.records.per.snapshot int 500 ro 0..500 4+
share.coordinator.state.topic.compression.codec int 0 ro - 4+
share.coordinator.state.topic.min.isr short 2 ro 1.. 4+
share.coordinator.state.topic.num.partitions int 50 ro 1.. 4+
share.coordinator.state.topic.prune.interval.ms int 300000 ro 1.. 4+ internal
share.coordinator.state.topic.replication.factor short 3 ro 1.. 4+
share.coordinator.state.topic.segment.bytes int 104857600 ro 1.. 4+
share.coordinator.threads int 1 ro 1.. 4+
share.coordinator.write.timeout.ms int 5000 ro 1.. 4+
share.fetch.purgatory.purge.interval.requests int 1000 ro - 4+
transaction.abort.timed.out.transaction.cleanup.interval.ms int 10000 ro 1..
transaction.max.timeout.ms int 900000 ro 1..
transaction.partition.verification.enable bool true cluster
transaction.remove.expired.transaction.cleanup.interval.ms int 3600000 ro 1..
transaction.state.log.load.buffer.size int 5242880 ro 1..
transaction.state.log.min.isr int 2 ro 1..
transaction.state.log.num.partitions int 50 ro 1..
transaction.state.log.replication.factor short 3 ro 1..
transaction.state.log.segment.bytes int 104857600 ro 1..
transaction.two.phase.commit.enable bool false ro - 4+
transactional.id.expiration.ms int 604800000 ro 1..
"""
