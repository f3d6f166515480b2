"""Texts on keys of groups, offsets, transactions and share groups, in the notation of the package."""

TABLE = """
add.partitions.to.txn.retry.backoff.max.ms
    The longest pause before the broker asks again to add partitions to a transaction.
add.partitions.to.txn.retry.backoff.ms
    The first pause before the broker asks again to add partitions to a transaction.
errors.deadletterqueue.auto.create.topics.enable
    Whether topics for records that share groups give up on are created when they are needed.
errors.deadletterqueue.topic.name.prefix
    How the names of topics begin that take the records share groups give up on.
group.consumer.assignment.interval.ms
    The shortest time between two assignments of a consumer group unless the group says otherwise.
group.consumer.assignor.offload.enable
    Whether assignments of consumer groups are computed apart from the thread that serves the group.
group.consumer.assignors
    How partitions may be assigned in consumer groups: built-in names or classes, the default first.
group.consumer.heartbeat.interval.ms
    How often members of a consumer group send a heartbeat.
group.consumer.max.assignment.interval.ms
    Upper bound of the assignment interval that a consumer group may set.
group.consumer.max.heartbeat.interval.ms
    Upper bound of the heartbeat interval that a consumer group may set.
group.consumer.max.session.timeout.ms
    Upper bound of the session time-out that a consumer group may set.
group.consumer.max.size
    The most members of a consumer group.
group.consumer.migration.policy
    Whether live groups may change from the classic to the consumer protocol (upgrade), back (downgrade),
    both ways (bidirectional) or not at all (disabled).
group.consumer.min.assignment.interval.ms
    Lower bound of the assignment interval that a consumer group may set.
group.consumer.min.heartbeat.interval.ms
    Lower bound of the heartbeat interval that a consumer group may set.
group.consumer.min.session.timeout.ms
    Lower bound of the session time-out that a consumer group may set.
group.consumer.regex.refresh.interval.ms
    How often subscriptions by pattern are compared with the topics that exist.
group.consumer.session.timeout.ms
    After how long without a heartbeat a member of a consumer group is removed.
group.coordinator.append.linger.ms
    How long the group coordinator gathers writes before it appends them; -1 adapts to the load.
group.coordinator.background.threads
    Threads of the group coordinator for work apart from requests, such as assignments.
group.coordinator.cached.buffer.max.bytes
    The largest write buffer that the group coordinator keeps for the next write.
group.coordinator.new.enable
    Whether the rewritten group coordinator is used.
group.coordinator.rebalance.protocols
    The group protocols that the coordinator serves.
group.coordinator.threads
    Threads of the group coordinator.
group.initial.rebalance.delay.ms
    How long the first rebalance of a new classic group waits for more members.
group.max.session.timeout.ms
    The longest session time-out that a classic member may ask for. Long ones find failures late.
group.max.size
    The most members of a classic group.
group.min.session.timeout.ms
    The shortest session time-out that a classic member may ask for. Short ones cost more heartbeats.
group.share.assignment.interval.ms
    The shortest time between two assignments of a share group unless the group says otherwise.
group.share.assignor.offload.enable
    Whether assignments of share groups are computed apart from the thread that serves the group.
group.share.assignors
    How partitions are assigned in share groups: a built-in name or a class.
group.share.delivery.count.limit
    How often a record is handed out to a share group before it is given up.
group.share.dlq.manager.class.name
    The class that stores records which share groups have given up on.
group.share.enable
    Whether share groups are offered.
group.share.heartbeat.interval.ms
    How often members of a share group send a heartbeat.
group.share.initialize.retry.interval.ms
    The pause before setting up a share group's partitions is tried again.
group.share.max.assignment.interval.ms
    Upper bound of the assignment interval that a share group may set.
group.share.max.delivery.count.limit
    Upper bound of the delivery count that a share group may set.
group.share.max.groups
    The most share groups.
group.share.max.heartbeat.interval.ms
    Upper bound of the heartbeat interval that a share group may set.
group.share.max.partition.max.record.locks
    Upper bound of the number of locked records that a share group may set.
group.share.max.record.lock.duration.ms
    Upper bound of the lock time that a share group may set.
group.share.max.session.timeout.ms
    Upper bound of the session time-out that a share group may set.
group.share.max.share.sessions
    The most share sessions on one broker.
group.share.max.size
    The most members of a share group.
group.share.min.assignment.interval.ms
    Lower bound of the assignment interval that a share group may set.
group.share.min.delivery.count.limit
    Lower bound of the delivery count that a share group may set.
group.share.min.heartbeat.interval.ms
    Lower bound of the heartbeat interval that a share group may set.
group.share.min.partition.max.record.locks
    Lower bound of the number of locked records that a share group may set.
group.share.min.record.lock.duration.ms
    Lower bound of the lock time that a share group may set.
group.share.min.session.timeout.ms
    Lower bound of the session time-out that a share group may set.
group.share.partition.max.record.locks
    How many records of one partition a share group may hold locked at a time.
group.share.persister.class.name
    The class that stores the progress of share groups.
group.share.record.lock.duration.ms
    How long a record that was handed out stays locked for its reader.
group.share.session.timeout.ms
    After how long without a heartbeat a member of a share group is removed.
group.streams.acceptable.recovery.lag
    How far a copy of a stream task's state may be behind and still count as caught up.
group.streams.assignment.interval.ms
    The shortest time between two assignments of a streams group unless the group says otherwise.
group.streams.assignor.offload.enable
    Whether assignments of streams groups are computed apart from the thread that serves the group.
group.streams.assignors
    How tasks are assigned in streams groups: a built-in name or a class.
group.streams.heartbeat.interval.ms
    How often members of a streams group send a heartbeat.
group.streams.initial.rebalance.delay.ms
    How long the first assignment of a new streams group waits for more members.
group.streams.max.assignment.interval.ms
    Upper bound of the assignment interval that a streams group may set.
group.streams.max.heartbeat.interval.ms
    Upper bound of the heartbeat interval that a streams group may set.
group.streams.max.session.timeout.ms
    Upper bound of the session time-out that a streams group may set.
group.streams.max.size
    The most members of a streams group.
group.streams.max.standby.replicas
    Upper bound of the number of standby tasks that a streams group may set.
group.streams.max.warmup.replicas
    Upper bound of the number of warm-up tasks that a streams group may set.
group.streams.min.assignment.interval.ms
    Lower bound of the assignment interval that a streams group may set.
group.streams.min.heartbeat.interval.ms
    Lower bound of the heartbeat interval that a streams group may set.
group.streams.min.session.timeout.ms
    Lower bound of the session time-out that a streams group may set.
group.streams.min.task.offset.interval.ms
    Lower bound of the interval of task offsets that a streams group may set.
group.streams.num.standby.replicas
    How many standby tasks keep a copy of each task's state.
group.streams.num.warmup.replicas
    How many tasks at a time may warm up on another member before they move there.
group.streams.rack.aware.assignment.tags
    Client tags over whose values standby tasks are spread.
group.streams.session.timeout.ms
    After how long without a heartbeat a member of a streams group is removed.
group.streams.task.offset.interval.ms
    How often members of a streams group report the offsets of their tasks.
group.streams.topology.description.plugin.class
    A class that stores the topologies that streams groups describe.
offset.metadata.max.bytes
    The longest note that may be stored with a committed offset.
offsets.commit.required.acks
    Which acks a commit of offsets waits for.
offsets.commit.timeout.ms
    How long a commit waits for the replicas of the offsets topic.
offsets.load.buffer.size
    Bytes read at a time when a coordinator loads committed offsets.
offsets.retention.check.interval.ms
    How often expired offsets are looked for.
offsets.retention.minutes
    How long offsets of a group without members, or of a topic that is no longer subscribed to, are kept.
offsets.topic.compression.codec
    Codec of the offsets topic by its number; 0 is none.
offsets.topic.num.partitions
    Partitions of the offsets topic. Must not change once the topic exists.
offsets.topic.replication.factor
    Replicas of the offsets topic; it is not created before as many brokers are there.
offsets.topic.segment.bytes
    Segment size of the offsets topic; small ones make for quick compaction and loading.
producer.id.expiration.check.interval.ms
    How often idle producer ids are looked for.
producer.id.expiration.ms
    How long a partition remembers an idle producer's id and sequence.
share.coordinator.append.linger.ms
    How long the share coordinator gathers writes before it appends them; -1 adapts to the load.
share.coordinator.cached.buffer.max.bytes
    The largest write buffer that the share coordinator keeps for the next write.
share.coordinator.cold.partition.snapshot.interval.ms
    After how long a share partition without changes gets a snapshot.
share.coordinator.load.buffer.size
    Bytes read at a time when the state of share groups is loaded.
share.coordinator.snapshot.update.records.per.snapshot
    After how many updates the share coordinator writes a whole snapshot.
share.coordinator.state.topic.compression.codec
    Codec of the topic with the state of share groups by its number; 0 is none.
share.coordinator.state.topic.min.isr
    In-sync replicas that writes to the topic with the state of share groups need.
share.coordinator.state.topic.num.partitions
    Partitions of the topic with the state of share groups. Must not change once it exists.
share.coordinator.state.topic.prune.interval.ms
    How often records that are no longer needed are deleted from the topic with the state of share groups.
share.coordinator.state.topic.replication.factor
    Replicas of the topic with the state of share groups.
share.coordinator.state.topic.segment.bytes
    Segment size of the topic with the state of share groups.
share.coordinator.threads
    Threads of the share coordinator.
share.coordinator.write.timeout.ms
    How long a write of the share coordinator waits for the replicas.
share.fetch.purgatory.purge.interval.requests
    After how many answered share fetches the table of waiting ones is swept.
transaction.abort.timed.out.transaction.cleanup.interval.ms
    How often transactions that exceeded their time-out are looked for and aborted.
transaction.max.timeout.ms
    The longest time-out that a transactional producer may ask for.
transaction.partition.verification.enable
    Whether a partition asks the coordinator if the transaction is open before it takes its first write.
transaction.remove.expired.transaction.cleanup.interval.ms
    How often transactional ids that have expired are looked for.
transaction.state.log.load.buffer.size
    Bytes read at a time when a coordinator loads producer ids and transactions.
transaction.state.log.min.isr
    In-sync replicas that writes to the transactions topic need.
transaction.state.log.num.partitions
    Partitions of the transactions topic. Must not change once the topic exists.
transaction.state.log.replication.factor
    Replicas of the transactions topic; it is not created before as many brokers are there.
transaction.state.log.segment.bytes
    Segment size of the transactions topic.
transaction.two.phase.commit.enable
    Whether producers may leave the decision on a prepared transaction to an outside coordinator.
transactional.id.expiration.ms
    How long an idle transactional id is remembered.
"""
