"""Texts on keys of logs, cleaning, retention and tiered storage, in the notation of the package."""

TABLE = """
compression.gzip.level
    Effort of gzip from 1 to 9 where the broker compresses batches itself; -1 is the codec's own choice.
compression.lz4.level
    Effort of LZ4 from 1 to 17 where the broker compresses batches itself.
compression.type
    Codec in which batches are stored unless a topic says otherwise; producer keeps what arrives.
compression.zstd.level
    Effort of Zstandard where the broker compresses batches itself; negative levels are faster.
cordoned.log.dirs
    Log directories that get no new partitions; * means all of them.
follower.fetch.last.tiered.offset.enable
    Whether a new follower of a tiered partition begins behind what tiered storage holds instead of at the
    start of the leader's log.
log.cleaner.backoff.ms
    How long the cleaner rests when no log needs compaction.
log.cleaner.dedupe.buffer.size
    Memory for the keys of the logs under compaction, over all cleaner threads.
log.cleaner.delete.retention.ms
    How long compacted topics keep the marks of deleted keys.
log.cleaner.enable
    Whether compaction runs. Without it compacted topics grow for ever.
log.cleaner.io.buffer.load.factor
    How full the table of keys may get in compaction; more keys in one pass, but more collisions.
log.cleaner.io.buffer.size
    Memory for reading and writing in compaction, over all cleaner threads.
log.cleaner.io.max.bytes.per.second
    The most bytes per second that compaction reads and writes together.
log.cleaner.max.compaction.lag.ms
    The longest time that a record of a compacted topic may wait until its segment is compacted.
log.cleaner.min.cleanable.ratio
    The share of a log that must be uncompacted before compaction takes it up.
log.cleaner.min.compaction.lag.ms
    How long a record stays out of reach of compaction.
log.cleaner.threads
    Threads that compact logs.
log.cleanup.policy
    What happens to old records of topics that do not say it themselves: delete, compact or both.
log.dir
    The directory of the logs; only where log.dirs is not set.
log.dir.failure.timeout.ms
    KRaft only: how long a broker may fail to tell the controller of a lost directory before it stops.
log.dirs
    The directories of the logs, separated by commas. New partitions go to the one with the fewest.
log.flush.interval.messages
    After how many records a log is forced to disk.
log.flush.interval.ms
    After how many milliseconds unwritten records are forced to disk; unset, the value of
    log.flush.scheduler.interval.ms counts.
log.flush.offset.checkpoint.interval.ms
    How often the broker notes down to where each log is surely on disk.
log.flush.scheduler.interval.ms
    How often it is looked for logs that are due to be forced to disk.
log.flush.start.offset.checkpoint.interval.ms
    How often the broker notes down the first readable offset of each log.
log.index.interval.bytes
    How many bytes of batches lie between two entries of an offset index.
log.index.size.max.bytes
    The largest size of an offset index; a full index closes its segment.
log.initial.task.delay.ms
    How long after the start the periodic work on logs begins.
log.local.retention.bytes
    How many bytes of a tiered partition stay on local disk; -2 takes the value of log.retention.bytes.
log.local.retention.ms
    How long segments of a tiered partition stay on local disk; -2 takes the value of log.retention.ms.
log.message.downconversion.enable
    Whether batches are converted for clients that read the old message formats only.
log.message.format.version
    Has no effect any more: batches are stored in the current format.
log.message.timestamp.after.max.ms
    How far ahead of the broker's clock a producer's timestamp may lie.
log.message.timestamp.before.max.ms
    How far behind the broker's clock a producer's timestamp may lie.
log.message.timestamp.difference.max.ms
    The older single limit for both directions; used while its two successors are not set.
log.message.timestamp.type
    Whether records carry their producer's time (CreateTime) or that of their append (LogAppendTime).
log.preallocate
    Whether new segment files take their full size on disk at once.
log.remote.copy.lag.bytes
    How many bytes of closed segments may wait before they are copied to tiered storage.
log.remote.copy.lag.ms
    How long a closed segment may wait before it is copied to tiered storage.
log.retention.bytes
    How large a partition may grow before its oldest segments are dropped; -1 sets no limit.
log.retention.check.interval.ms
    How often it is looked for segments that retention may drop.
log.retention.hours
    How long records are kept, in hours; log.retention.minutes and log.retention.ms come before it.
log.retention.minutes
    How long records are kept, in minutes; comes before log.retention.hours, yields to log.retention.ms.
log.retention.ms
    How long records are kept, in milliseconds; -1 keeps them for ever. Unset, the values in minutes and
    hours count.
log.roll.hours
    The age in hours at which a segment is closed even if it is not full; yields to log.roll.ms.
log.roll.jitter.hours
    The most by which the age limit of segments is shortened at random, in hours; yields to
    log.roll.jitter.ms.
log.roll.jitter.ms
    The most by which the age limit of segments is shortened at random, so that not all close at once.
log.roll.ms
    The age at which a segment is closed even if it is not full.
log.segment.bytes
    The size at which a segment file is closed and the next one begun.
log.segment.delete.delay.ms
    How long the files of a dropped segment stay on disk, for reads that have begun.
max.decompressed.message.bytes
    The largest single record, measured after decompression, that a producer may send.
message.max.bytes
    The largest batch that is accepted, measured as it arrives and again as it would be stored.
min.insync.replicas
    How many replicas must be in sync for a write with acks=all to be accepted.
remote.fetch.max.wait.ms
    How long a fetch waits for records from tiered storage.
remote.list.offsets.request.timeout.ms
    How long a search for an offset by time waits for tiered storage.
remote.log.index.file.cache.total.size.bytes
    Disk space for indexes of remote segments that are kept locally.
remote.log.index.file.cache.ttl.ms
    How long an unused index of a remote segment is kept locally; -1 sets no limit.
remote.log.manager.copier.thread.pool.size
    Threads that copy segments to tiered storage.
remote.log.manager.copy.max.bytes.per.second
    The most bytes per second that are copied to tiered storage.
remote.log.manager.copy.quota.window.num
    How many samples the rate of copying to tiered storage is averaged over.
remote.log.manager.copy.quota.window.size.seconds
    Length of one sample of the rate of copying to tiered storage.
remote.log.manager.expiration.thread.pool.size
    Threads that remove expired segments from tiered storage.
remote.log.manager.fetch.max.bytes.per.second
    The most bytes per second that are read from tiered storage.
remote.log.manager.fetch.quota.window.num
    How many samples the rate of reading from tiered storage is averaged over.
remote.log.manager.fetch.quota.window.size.seconds
    Length of one sample of the rate of reading from tiered storage.
remote.log.manager.follower.thread.pool.size
    Threads that keep followers of tiered partitions up to date on what is remote.
remote.log.manager.task.interval.ms
    How often each tiered partition is looked at for segments to copy and to expire.
remote.log.manager.task.retry.backoff.max.ms
    The longest pause before a failed task of tiered storage is tried again.
remote.log.manager.task.retry.backoff.ms
    The first pause before a failed task of tiered storage is tried again; it grows from there.
remote.log.manager.task.retry.jitter
    The share by which the pauses between tries of a failed task of tiered storage vary at random.
remote.log.manager.thread.pool.size
    Threads for tiered storage as a whole; the pools for copying and expiring have keys of their own.
remote.log.metadata.custom.metadata.max.bytes
    The largest note that a storage plugin may attach to a remote segment.
remote.log.metadata.manager.class.name
    The class that keeps the list of remote segments.
remote.log.metadata.manager.class.path
    Where the class that keeps the list of remote segments is loaded from if it is not on the class path.
remote.log.metadata.manager.impl.prefix
    Keys with this prefix are handed to the class that keeps the list of remote segments.
remote.log.metadata.manager.listener.name
    The listener through which the class that keeps the list of remote segments reaches the broker.
remote.log.reader.max.pending.tasks
    How many reads from tiered storage may wait; more are refused.
remote.log.reader.threads
    Threads that read from tiered storage.
remote.log.storage.manager.class.name
    The class that moves segments to and from tiered storage.
remote.log.storage.manager.class.path
    Where the class that moves segments to and from tiered storage is loaded from if it is not on the
    class path.
remote.log.storage.manager.impl.prefix
    Keys with this prefix are handed to the class that moves segments to and from tiered storage.
remote.log.storage.system.enable
    Whether the broker offers tiered storage at all.
"""
