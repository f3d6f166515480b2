"""Topics, partitions, replicas and their directories.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request CreateTopicsRequest 19 versions 0-7 flexible 5+
  Topics: [CreatableTopic]
    Name: string
    NumPartitions: int32
    ReplicationFactor: int16
    Assignments: [CreatableReplicaAssignment]
      PartitionIndex: int32
      BrokerIds: [int32]
    Configs: [CreatableTopicConfig]
      Name: string
      Value: string?
  timeoutMs: int32 = 60000
  validateOnly: bool 1+

response CreateTopicsResponse 19 versions 0-7 flexible 5+
  ThrottleTimeMs: int32 2+ ~
  Topics: [CreatableTopicResult]
    Name: string
    TopicId: uuid 7+ ~
    ErrorCode: int16
    ErrorMessage: string? 1+ ~
    TopicConfigErrorCode: int16 5+ tag 0 ~
    NumPartitions: int32 5+ = -1 ~
    ReplicationFactor: int16 5+ = -1 ~
    Configs: [CreatableTopicConfigs]? 5+ ~
      Name: string
      Value: string?
      ReadOnly: bool
      ConfigSource: int8 = -1 ~
      IsSensitive: bool

request DeleteTopicsRequest 20 versions 0-6 flexible 4+
  Topics: [DeleteTopicState] 6+
    Name: string? = null
    TopicId: uuid
  TopicNames: [string] 0-5 ~
  TimeoutMs: int32

response DeleteTopicsResponse 20 versions 0-6 flexible 4+
  ThrottleTimeMs: int32 1+ ~
  Responses: [DeletableTopicResult]
    Name: string?6+
    TopicId: uuid 6+ ~
    ErrorCode: int16
    ErrorMessage: string? 5+ = null ~

request CreatePartitionsRequest 37 versions 0-3 flexible 2+
  Topics: [CreatePartitionsTopic]
    Name: string
    Count: int32
    Assignments: [CreatePartitionsAssignment]?
      BrokerIds: [int32]
  TimeoutMs: int32
  ValidateOnly: bool

response CreatePartitionsResponse 37 versions 0-3 flexible 2+
  ThrottleTimeMs: int32
  Results: [CreatePartitionsTopicResult]
    Name: string
    ErrorCode: int16
    ErrorMessage: string? = null

request ElectLeadersRequest 43 versions 0-2 flexible 2+
  ElectionType: int8 1+
  TopicPartitions: [TopicPartitions]?
    Topic: string
    Partitions: [int32]
  TimeoutMs: int32 = 60000

response ElectLeadersResponse 43 versions 0-2 flexible 2+
  ThrottleTimeMs: int32
  ErrorCode: int16 1+
  ReplicaElectionResults: [ReplicaElectionResult]
    Topic: string
    PartitionResult: [PartitionResult]
      PartitionId: int32
      ErrorCode: int16
      ErrorMessage: string?

request AlterPartitionReassignmentsRequest 45 versions 0-1 flexible 0+
  TimeoutMs: int32 = 60000
  AllowReplicationFactorChange: bool 1+ = true
  Topics: [ReassignableTopic]
    Name: string
    Partitions: [ReassignablePartition]
      PartitionIndex: int32
      Replicas: [int32]? = null

response AlterPartitionReassignmentsResponse 45 versions 0-1 flexible 0+
  ThrottleTimeMs: int32
  AllowReplicationFactorChange: bool 1+ = true ~
  ErrorCode: int16
  ErrorMessage: string?
  Responses: [ReassignableTopicResponse]
    Name: string
    Partitions: [ReassignablePartitionResponse]
      PartitionIndex: int32
      ErrorCode: int16
      ErrorMessage: string?

request ListPartitionReassignmentsRequest 46 versions 0 flexible 0+
  TimeoutMs: int32 = 60000
  Topics: [ListPartitionReassignmentsTopics]? = null
    Name: string
    PartitionIndexes: [int32]

response ListPartitionReassignmentsResponse 46 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string?
  Topics: [OngoingTopicReassignment]
    Name: string
    Partitions: [OngoingPartitionReassignment]
      PartitionIndex: int32
      Replicas: [int32]
      AddingReplicas: [int32]
      RemovingReplicas: [int32]

request AlterReplicaLogDirsRequest 34 versions 0-2 flexible 2+
  Dirs: [AlterReplicaLogDir]
    Path: string
    Topics: [AlterReplicaLogDirTopic]
      Name: string
      Partitions: [int32]

response AlterReplicaLogDirsResponse 34 versions 0-2 flexible 2+
  ThrottleTimeMs: int32
  Results: [AlterReplicaLogDirTopicResult]
    TopicName: string
    Partitions: [AlterReplicaLogDirPartitionResult]
      PartitionIndex: int32
      ErrorCode: int16

request DescribeLogDirsRequest 35 versions 0-5 flexible 2+
  Topics: [DescribableLogDirTopic]?
    Topic: string
    Partitions: [int32]

response DescribeLogDirsResponse 35 versions 0-5 flexible 2+
  ThrottleTimeMs: int32
  ErrorCode: int16 3+ ~
  Results: [DescribeLogDirsResult]
    ErrorCode: int16
    LogDir: string
    Topics: [DescribeLogDirsTopic]
      Name: string
      Partitions: [DescribeLogDirsPartition]
        PartitionIndex: int32
        PartitionSize: int64
        OffsetLag: int64
        IsFutureKey: bool
    TotalBytes: int64 4+ = -1 ~
    UsableBytes: int64 4+ = -1 ~
    IsCordoned: bool 5+ ~
"""
