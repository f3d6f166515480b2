"""Broker keys of the log layer: segments, retention, cleaning, compression, tiered storage.

One key a line in the notation that definitions.py explains.
"""

TABLE = """
compression.gzip.level int -1 cluster 1..9|-1
compression.lz4.level int 9 cluster 1..17
compression.type string producer cluster {uncompressed,zstd,lz4,snappy,gzip,producer}
compression.zstd.level int 3 cluster -131072..22
cordoned.log.dirs list "" broker - 4+
follower.fetch.last.tiered.offset.enable bool false cluster - 4+
log.cleaner.backoff.ms long 15000 cluster 0..
log.cleaner.dedupe.buffer.size long 134217728 cluster
log.cleaner.delete.retention.ms long 86400000 cluster 0..
log.cleaner.enable bool true ro
log.cleaner.io.buffer.load.factor double 0.9 cluster
log.cleaner.io.buffer.size int 524288 cluster 0..
log.cleaner.io.max.bytes.per.second double 1.7976931348623157E308 cluster
log.cleaner.max.compaction.lag.ms long max cluster 1..
log.cleaner.min.cleanable.ratio double 0.5 cluster 0..1
log.cleaner.min.compaction.lag.ms long 0 cluster 0..
log.cleaner.threads int 1 cluster 0..
log.cleanup.policy list delete cluster {compact,delete}
log.dir list /tmp/kafka-logs ro
log.dir.failure.timeout.ms long 30000 ro 1..
log.dirs list null ro
log.flush.interval.messages long max cluster 1..
log.flush.interval.ms long null cluster
log.flush.offset.checkpoint.interval.ms int 60000 ro 0..
log.flush.scheduler.interval.ms long max ro
log.flush.start.offset.checkpoint.interval.ms int 60000 ro 0..
log.index.interval.bytes int 4096 cluster 0..
log.index.size.max.bytes int 10485760 cluster 4..
log.initial.task.delay.ms long 30000 ro 0.. - internal
log.local.retention.bytes long -2 cluster -2..
log.local.retention.ms long -2 cluster -2..
log.message.downconversion.enable bool true cluster - <4
log.message.format.version string 3.0-IV1 ro release <4
log.message.timestamp.after.max.ms long 3600000 cluster 0..
log.message.timestamp.before.max.ms long max cluster 0..
log.message.timestamp.difference.max.ms long max cluster 0.. <4
log.message.timestamp.type string CreateTime cluster {CreateTime,LogAppendTime}
log.preallocate bool false cluster
log.remote.copy.lag.bytes long -1 cluster -1.. 4+
log.remote.copy.lag.ms long 0 cluster -1.. 4+
log.retention.bytes long -1 cluster
log.retention.check.interval.ms long 300000 ro 1..
log.retention.hours int 168 ro
log.retention.minutes int null ro
log.retention.ms long null cluster
log.roll.hours int 168 ro 1..
log.roll.jitter.hours int 0 ro 0..
log.roll.jitter.ms long null cluster
log.roll.ms long null cluster
log.segment.bytes int 1073741824 cluster 1048576..
log.segment.delete.delay.ms long 60000 cluster 0..
max.decompressed.message.bytes int 2147483639 cluster 1..2147483639 4+
message.max.bytes int 1048588 cluster 0..
min.insync.replicas int 1 cluster 1..
remote.fetch.max.wait.ms int 500 cluster 1..
remote.list.offsets.request.timeout.ms long 30000 cluster 1.. 4+
remote.log.index.file.cache.total.size.bytes long 1073741824 cluster 1..
remote.log.index.file.cache.ttl.ms long 900000 ro -1.. 4+ internal
remote.log.manager.copier.thread.pool.size int 10 cluster 1..
remote.log.manager.copy.max.bytes.per.second long max cluster 1..
remote.log.manager.copy.quota.window.num int 11 ro 1..
remote.log.manager.copy.quota.window.size.seconds int 1 ro 1..
remote.log.manager.expiration.thread.pool.size int 10 cluster 1..
remote.log.manager.fetch.max.bytes.per.second long max cluster 1..
remote.log.manager.fetch.quota.window.num int 11 ro 1..
remote.log.manager.fetch.quota.window.size.seconds int 1 ro 1..
remote.log.manager.follower.thread.pool.size int 2 cluster 1.. 4+
remote.log.manager.task.interval.ms long 30000 ro 1..
remote.log.manager.task.retry.backoff.max.ms long 30000 ro 1.. - internal
remote.log.manager.task.retry.backoff.ms long 500 ro 1.. - internal
remote.log.manager.task.retry.jitter double 0.2 ro 0..0.5 - internal
remote.log.manager.thread.pool.size int 2 ro 1..
remote.log.metadata.custom.metadata.max.bytes int 128 ro 0..
remote.log.metadata.manager.class.name string
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager ro nonempty
remote.log.metadata.manager.class.path string null ro
remote.log.metadata.manager.impl.prefix string rlmm.config. ro nonempty
remote.log.metadata.manager.listener.name string null ro nonempty
remote.log.reader.max.pending.tasks int 100 ro 1..
remote.log.reader.threads int 10 cluster 1..
remote.log.storage.manager.class.name string null ro nonempty
remote.log.storage.manager.class.path string null ro
remote.log.storage.manager.impl.prefix string rsm.config. ro nonempty
remote.log.storage.system.enable bool false ro
"""
