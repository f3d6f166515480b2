"""Committed offsets and their coordinator.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request OffsetCommitRequest 8 versions 0-10 flexible 8+
  GroupId: string
  GenerationIdOrMemberEpoch: int32 1+ = -1 ~
  MemberId: string 1+ ~
  GroupInstanceId: string? 7+ = null
  RetentionTimeMs: int64 2-4 = -1 ~
  Topics: [OffsetCommitRequestTopic]
    Name: string 0-9 ~
    TopicId: uuid 10+ ~
    Partitions: [OffsetCommitRequestPartition]
      PartitionIndex: int32
      CommittedOffset: int64
      CommittedLeaderEpoch: int32 6+ = -1 ~
      CommitTimestamp: int64 1 = -1
      CommittedMetadata: string?

response OffsetCommitResponse 8 versions 0-10 flexible 8+
  ThrottleTimeMs: int32 3+ ~
  Topics: [OffsetCommitResponseTopic]
    Name: string 0-9 ~
    TopicId: uuid 10+ ~
    Partitions: [OffsetCommitResponsePartition]
      PartitionIndex: int32
      ErrorCode: int16

request OffsetFetchRequest 9 versions 0-10 flexible 6+
  GroupId: string 0-7
  Topics: [OffsetFetchRequestTopic]?2-7 0-7
    Name: string
    PartitionIndexes: [int32]
  Groups: [OffsetFetchRequestGroup] 8+
    GroupId: string
    MemberId: string? 9+ = null ~
    MemberEpoch: int32 9+ = -1 ~
    Topics: [OffsetFetchRequestTopics]?
      Name: string 8-9 ~
      TopicId: uuid 10+ ~
      PartitionIndexes: [int32]
  RequireStable: bool 7+

response OffsetFetchResponse 9 versions 0-10 flexible 6+
  ThrottleTimeMs: int32 3+ ~
  Topics: [OffsetFetchResponseTopic] 0-7
    Name: string
    Partitions: [OffsetFetchResponsePartition]
      PartitionIndex: int32
      CommittedOffset: int64
      CommittedLeaderEpoch: int32 5-7 = -1 ~
      Metadata: string?
      ErrorCode: int16
  ErrorCode: int16 2-7 ~
  Groups: [OffsetFetchResponseGroup] 8+
    GroupId: string
    Topics: [OffsetFetchResponseTopics]
      Name: string 8-9 ~
      TopicId: uuid 10+ ~
      Partitions: [OffsetFetchResponsePartitions]
        PartitionIndex: int32
        CommittedOffset: int64
        CommittedLeaderEpoch: int32 = -1 ~
        Metadata: string?
        ErrorCode: int16
    ErrorCode: int16

request OffsetDeleteRequest 47 versions 0
  GroupId: string
  Topics: [OffsetDeleteRequestTopic]
    Name: string
    Partitions: [OffsetDeleteRequestPartition]
      PartitionIndex: int32

response OffsetDeleteResponse 47 versions 0
  ErrorCode: int16
  ThrottleTimeMs: int32 ~
  Topics: [OffsetDeleteResponseTopic]
    Name: string
    Partitions: [OffsetDeleteResponsePartition]
      PartitionIndex: int32
      ErrorCode: int16

request FindCoordinatorRequest 10 versions 0-6 flexible 3+
  Key: string 0-3
  KeyType: int8 1+
  CoordinatorKeys: [string] 4+

response FindCoordinatorResponse 10 versions 0-6 flexible 3+
  ThrottleTimeMs: int32 1+ ~
  ErrorCode: int16 0-3
  ErrorMessage: string? 1-3 ~
  NodeId: int32 0-3
  Host: string 0-3
  Port: int32 0-3
  Coordinators: [Coordinator] 4+
    Key: string
    NodeId: int32
    Host: string
    Port: int32
    ErrorCode: int16
    ErrorMessage: string? ~
"""
