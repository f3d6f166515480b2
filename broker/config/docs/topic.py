"""Texts on topic keys, in the notation of the package."""

TABLE = """
cleanup.policy
    What happens to old records: delete drops whole segments by age or size, compact keeps the newest record
    of each key. Both may be given.
compression.gzip.level
    Effort of gzip from 1 to 9 where the broker compresses batches itself; -1 is the codec's own choice.
compression.lz4.level
    Effort of LZ4 from 1 to 17 where the broker compresses batches itself.
compression.type
    Codec in which batches are stored. producer keeps what arrives, uncompressed unpacks it, any other value
    has the broker compress anew.
compression.zstd.level
    Effort of Zstandard where the broker compresses batches itself; negative levels are faster.
delete.retention.ms
    How long a compacted topic keeps the mark of a deleted key, so that a reader who starts from the
    beginning within that time still sees the deletion.
errors.deadletterqueue.group.enable
    Whether share groups may write the records they give up on to this topic.
file.delete.delay.ms
    How long the files of a dropped segment stay on disk, for reads that have begun.
flush.messages
    After how many records the log is forced to disk; the greatest value leaves that to the operating system.
flush.ms
    After how many milliseconds unwritten records are forced to disk; the greatest value leaves that to the
    operating system.
follower.replication.throttled.replicas
    Replicas whose fetching from the leader is slowed down: partition:broker pairs, or * for all.
index.interval.bytes
    How many bytes of batches lie between two entries of the offset index. Smaller values make seeks shorter
    and the index larger.
leader.replication.throttled.replicas
    Replicas to which the leader sends at a limited rate: partition:broker pairs, or * for all.
local.retention.bytes
    How many bytes of a tiered partition stay on local disk; -2 takes the value of retention.bytes.
local.retention.ms
    How long segments of a tiered partition stay on local disk; -2 takes the value of retention.ms.
max.compaction.lag.ms
    The longest time that a record of a compacted topic may wait until its segment is compacted.
max.decompressed.message.bytes
    The largest single record, measured after decompression, that a producer may send.
max.message.bytes
    The largest batch that is accepted, measured as it arrives and again as it would be stored.
message.downconversion.enable
    Whether batches are converted for clients that read the old message formats only; without it their
    fetches fail.
message.format.version
    Has no effect any more: batches are stored in the current format.
message.timestamp.after.max.ms
    How far ahead of the broker's clock a producer's timestamp may lie.
message.timestamp.before.max.ms
    How far behind the broker's clock a producer's timestamp may lie.
message.timestamp.difference.max.ms
    The older single limit for both directions; used while its two successors are not set.
message.timestamp.type
    Whether a record carries the time its producer gave (CreateTime) or that of its append (LogAppendTime).
min.cleanable.dirty.ratio
    The share of the log that must be uncompacted before compaction takes it up: low values save space, high
    ones save work.
min.compaction.lag.ms
    How long a record stays out of reach of compaction.
min.insync.replicas
    How many replicas must be in sync for a write with acks=all to be accepted.
preallocate
    Whether a new segment file takes its full size on disk at once.
remote.copy.lag.bytes
    How many bytes of closed segments may wait before they are copied to tiered storage; -1 takes the value
    of local retention.
remote.copy.lag.ms
    How long a closed segment may wait before it is copied to tiered storage; -1 takes the value of local
    retention.
remote.log.copy.disable
    Stops copying to tiered storage while what is there stays readable.
remote.log.delete.on.disable
    Whether turning tiered storage off also removes what was copied there.
remote.storage.enable
    Whether closed segments of the topic are copied to tiered storage.
retention.bytes
    How large a partition may grow before its oldest segments are dropped; -1 sets no limit.
retention.ms
    How long records are kept before their segment is dropped; -1 keeps them for ever.
segment.bytes
    The size at which a segment file is closed and the next one begun.
segment.index.bytes
    The largest size of a segment's offset index; a full index closes the segment.
segment.jitter.ms
    The most by which the age limit of segments is shortened at random, so that not all close at once.
segment.ms
    The age at which a segment is closed even if it is not full, so that retention can reach it.
unclean.leader.election.enable
    Whether a replica that is behind may become leader when no other is left, at the price of lost records.
internal.segment.bytes
    Overrides segment.bytes with values below its minimum; for tests.
"""
