"""Texts on keys of single groups, in the notation of the package."""

TABLE = """
consumer.assignment.interval.ms
    Least time between two computations of a consumer group's assignment, in milliseconds.
consumer.assignor.offload.enable
    Whether the assignment of a consumer group may be computed in the background.
consumer.heartbeat.interval.ms
    How often members of a consumer group are told to send a heartbeat, in milliseconds.
consumer.session.timeout.ms
    How long a member of a consumer group may be silent before it is taken for dead, in milliseconds.
errors.deadletterqueue.copy.record.enable
    Whether a dead-letter topic gets the records themselves or only where they came from. Without effect
    while share.version is below 2.
errors.deadletterqueue.topic.name
    Topic for the records that a share group gives up on; empty for none. Without effect while share.version
    is below 2.
share.assignment.interval.ms
    Least time between two computations of a share group's assignment, in milliseconds.
share.assignor.offload.enable
    Whether the assignment of a share group may be computed in the background.
share.auto.offset.reset
    Where a share group starts in a partition it never read: earliest, latest, or by_duration with an ISO 8601
    length of time before now.
share.delivery.count.limit
    How many times a record is delivered to a share group before it is given up.
share.heartbeat.interval.ms
    How often members of a share group are told to send a heartbeat, in milliseconds.
share.isolation.level
    Whether a share group gets records of aborted transactions: read_uncommitted or read_committed.
share.partition.max.record.locks
    How many records of one partition may be with members of a share group at a time.
share.record.lock.duration.ms
    How long a member of a share group has a record to itself before others may get it, in milliseconds.
share.renew.acknowledge.enable
    Whether members of a share group may ask for more time with a record.
share.session.timeout.ms
    How long a member of a share group may be silent before it is taken for dead, in milliseconds.
streams.acceptable.recovery.lag
    How far behind, in offsets, a client may be and still count as ready to take over an active task.
streams.assignment.interval.ms
    Least time between two computations of a streams group's assignment, in milliseconds.
streams.assignor.name
    Which of the broker's task assignors a streams group uses; without a value the first of them.
streams.assignor.offload.enable
    Whether the assignment of a streams group may be computed in the background.
streams.heartbeat.interval.ms
    How often members of a streams group are told to send a heartbeat, in milliseconds.
streams.initial.rebalance.delay.ms
    How long a new streams group waits for more members before its first assignment, in milliseconds.
streams.num.standby.replicas
    How many standby copies the state of each task has.
streams.num.warmup.replicas
    How many additional copies may warm up at a time before tasks move to them.
streams.rack.aware.assignment.tags
    Client tags over whose values standby copies are spread.
streams.session.timeout.ms
    How long a member of a streams group may be silent before it is taken for dead, in milliseconds.
streams.task.offset.interval.ms
    How often clients report how far their copies of task state have come, in milliseconds.
"""
