"""Topic keys and the broker key that each takes its default from.

One key a line in the notation that definitions.py explains; the fourth column is the broker key.
"""

TABLE = """
cleanup.policy list delete log.cleanup.policy {compact,delete}
compression.gzip.level int -1 compression.gzip.level 1..9|-1
compression.lz4.level int 9 compression.lz4.level 1..17
compression.type string producer compression.type {uncompressed,zstd,lz4,snappy,gzip,producer}
compression.zstd.level int 3 compression.zstd.level -131072..22
delete.retention.ms long 86400000 log.cleaner.delete.retention.ms 0..
errors.deadletterqueue.group.enable bool false - - 4+
file.delete.delay.ms long 60000 log.segment.delete.delay.ms 0..
flush.messages long max log.flush.interval.messages 1..
flush.ms long max log.flush.interval.ms 0..
follower.replication.throttled.replicas list "" - throttled
index.interval.bytes int 4096 log.index.interval.bytes 0..
leader.replication.throttled.replicas list "" - throttled
local.retention.bytes long -2 log.local.retention.bytes -2..
local.retention.ms long -2 log.local.retention.ms -2..
max.compaction.lag.ms long max log.cleaner.max.compaction.lag.ms 1..
max.decompressed.message.bytes int 2147483639 max.decompressed.message.bytes 1..2147483639 4+
max.message.bytes int 1048588 message.max.bytes 0..
message.downconversion.enable bool true log.message.downconversion.enable - <4
message.format.version string 3.0-IV1 log.message.format.version release <4
message.timestamp.after.max.ms long 3600000 log.message.timestamp.after.max.ms 0..
message.timestamp.before.max.ms long max log.message.timestamp.before.max.ms 0..
message.timestamp.difference.max.ms long max log.message.timestamp.difference.max.ms 0.. <4
message.timestamp.type string CreateTime log.message.timestamp.type {CreateTime,LogAppendTime}
min.cleanable.dirty.ratio double 0.5 log.cleaner.min.cleanable.ratio 0..1
min.compaction.lag.ms long 0 log.cleaner.min.compaction.lag.ms 0..
min.insync.replicas int 1 min.insync.replicas 1..
preallocate bool false log.preallocate
remote.copy.lag.bytes long -1 log.remote.copy.lag.bytes -1.. 4+
remote.copy.lag.ms long 0 log.remote.copy.lag.ms -1.. 4+
remote.log.copy.disable bool false
remote.log.delete.on.disable bool false
remote.storage.enable bool false
retention.bytes long -1 log.retention.bytes
retention.ms long 604800000 log.retention.ms -1..
segment.bytes int 1073741824 log.segment.bytes 1048576..
segment.index.bytes int 10485760 log.index.size.max.bytes 4..
segment.jitter.ms long 0 log.roll.jitter.ms 0..
segment.ms long 604800000 log.roll.ms 1..
unclean.leader.election.enable bool false unclean.leader.election.enable
internal.segment.bytes int null - - 4+ internal
"""
