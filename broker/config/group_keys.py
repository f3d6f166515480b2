"""Keys of single groups (resource type GROUP) and the broker key that each takes its default from.

One key a line in the notation that definitions.py explains; the fourth column is the broker key. Kafka checks
the keys in this order. Keys of streams groups are kept and shown, although nothing serves such groups.
"""

TABLE = """
consumer.session.timeout.ms int 45000 group.consumer.session.timeout.ms 1..
consumer.heartbeat.interval.ms int 5000 group.consumer.heartbeat.interval.ms 1..
consumer.assignment.interval.ms int 1000 group.consumer.assignment.interval.ms 0..
consumer.assignor.offload.enable bool true group.consumer.assignor.offload.enable - - internal
share.session.timeout.ms int 45000 group.share.session.timeout.ms 1..
share.heartbeat.interval.ms int 5000 group.share.heartbeat.interval.ms 1..
share.record.lock.duration.ms int 30000 group.share.record.lock.duration.ms 1000..
share.delivery.count.limit int 5 group.share.delivery.count.limit 2..
share.partition.max.record.locks int 2000 group.share.partition.max.record.locks 100..
share.auto.offset.reset string latest -
share.isolation.level string read_uncommitted - {read_committed,read_uncommitted}
share.renew.acknowledge.enable bool true -
share.assignment.interval.ms int 1000 group.share.assignment.interval.ms 0..
share.assignor.offload.enable bool true group.share.assignor.offload.enable - - internal
streams.session.timeout.ms int 45000 group.streams.session.timeout.ms 1..
streams.heartbeat.interval.ms int 5000 group.streams.heartbeat.interval.ms 1..
streams.num.standby.replicas int 0 group.streams.num.standby.replicas 0..
streams.initial.rebalance.delay.ms int 3000 group.streams.initial.rebalance.delay.ms 0..
streams.assignment.interval.ms int 1000 group.streams.assignment.interval.ms 0..
streams.assignor.offload.enable bool true group.streams.assignor.offload.enable - - internal
streams.task.offset.interval.ms int 60000 group.streams.task.offset.interval.ms 1.. - internal
streams.num.warmup.replicas int 2 group.streams.num.warmup.replicas 0.. - internal
streams.rack.aware.assignment.tags list "" group.streams.rack.aware.assignment.tags
streams.acceptable.recovery.lag long 10000 group.streams.acceptable.recovery.lag 0.. - internal
streams.assignor.name string null group.streams.assignors
errors.deadletterqueue.topic.name string "" -
errors.deadletterqueue.copy.record.enable bool false -
"""
