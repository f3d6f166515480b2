"""Share groups (KIP-932): members, fetches, offsets.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request ShareGroupHeartbeatRequest 76 versions 1 flexible 0+
  GroupId: string
  MemberId: string
  MemberEpoch: int32
  RackId: string? = null
  SubscribedTopicNames: [string]? = null

response ShareGroupHeartbeatResponse 76 versions 1 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
  MemberId: string? = null
  MemberEpoch: int32
  HeartbeatIntervalMs: int32
  Assignment: Assignment? = null
    TopicPartitions: [TopicPartitions]
  struct TopicPartitions
    TopicId: uuid
    Partitions: [int32]

request ShareGroupDescribeRequest 77 versions 1 flexible 0+
  GroupIds: [string]
  IncludeAuthorizedOperations: bool

response ShareGroupDescribeResponse 77 versions 1 flexible 0+
  ThrottleTimeMs: int32
  Groups: [DescribedGroup]
    ErrorCode: int16
    ErrorMessage: string? = null
    GroupId: string
    GroupState: string
    GroupEpoch: int32
    AssignmentEpoch: int32
    AssignorName: string
    Members: [Member]
      MemberId: string
      RackId: string? = null
      MemberEpoch: int32
      ClientId: string
      ClientHost: string
      SubscribedTopicNames: [string]
      Assignment: Assignment
    AuthorizedOperations: int32 = -2147483648
  struct Assignment
    TopicPartitions: [TopicPartitions]
  struct TopicPartitions
    TopicId: uuid
    TopicName: string
    Partitions: [int32]

request ShareFetchRequest 78 versions 1-2 flexible 0+
  GroupId: string? = null
  MemberId: string?
  ShareSessionEpoch: int32
  MaxWaitMs: int32
  MinBytes: int32
  MaxBytes: int32 = 2147483647
  MaxRecords: int32
  BatchSize: int32
  ShareAcquireMode: int8 2+ ~
  IsRenewAck: bool 2+
  Topics: [FetchTopic]
    TopicId: uuid
    Partitions: [FetchPartition]
      PartitionIndex: int32
      AcknowledgementBatches: [AcknowledgementBatch]
        FirstOffset: int64
        LastOffset: int64
        AcknowledgeTypes: [int8]
  ForgottenTopicsData: [ForgottenTopic]
    TopicId: uuid
    Partitions: [int32]

response ShareFetchResponse 78 versions 1-2 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
  AcquisitionLockTimeoutMs: int32
  Responses: [ShareFetchableTopicResponse]
    TopicId: uuid
    Partitions: [PartitionData]
      PartitionIndex: int32
      ErrorCode: int16
      ErrorMessage: string? = null
      AcknowledgeErrorCode: int16
      AcknowledgeErrorMessage: string? = null
      CurrentLeader: LeaderIdAndEpoch
        LeaderId: int32
        LeaderEpoch: int32
      Records: records
      AcquiredRecords: [AcquiredRecords]
        FirstOffset: int64
        LastOffset: int64
        DeliveryCount: int16
  NodeEndpoints: [NodeEndpoint]
    NodeId: int32
    Host: string
    Port: int32
    Rack: string? = null

request ShareAcknowledgeRequest 79 versions 1-2 flexible 0+
  GroupId: string? = null
  MemberId: string?
  ShareSessionEpoch: int32
  IsRenewAck: bool 2+
  Topics: [AcknowledgeTopic]
    TopicId: uuid
    Partitions: [AcknowledgePartition]
      PartitionIndex: int32
      AcknowledgementBatches: [AcknowledgementBatch]
        FirstOffset: int64
        LastOffset: int64
        AcknowledgeTypes: [int8]

response ShareAcknowledgeResponse 79 versions 1-2 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
  AcquisitionLockTimeoutMs: int32 2+ ~
  Responses: [ShareAcknowledgeTopicResponse]
    TopicId: uuid
    Partitions: [PartitionData]
      PartitionIndex: int32
      ErrorCode: int16
      ErrorMessage: string? = null
      CurrentLeader: LeaderIdAndEpoch
        LeaderId: int32
        LeaderEpoch: int32
  NodeEndpoints: [NodeEndpoint]
    NodeId: int32
    Host: string
    Port: int32
    Rack: string? = null

request DescribeShareGroupOffsetsRequest 90 versions 0-1 flexible 0+
  Groups: [DescribeShareGroupOffsetsRequestGroup]
    GroupId: string
    Topics: [DescribeShareGroupOffsetsRequestTopic]?
      TopicName: string
      Partitions: [int32]

response DescribeShareGroupOffsetsResponse 90 versions 0-1 flexible 0+
  ThrottleTimeMs: int32
  Groups: [DescribeShareGroupOffsetsResponseGroup]
    GroupId: string
    Topics: [DescribeShareGroupOffsetsResponseTopic]
      TopicName: string
      TopicId: uuid
      Partitions: [DescribeShareGroupOffsetsResponsePartition]
        PartitionIndex: int32
        StartOffset: int64
        LeaderEpoch: int32
        Lag: int64 1+ = -1 ~
        ErrorCode: int16
        ErrorMessage: string? = null
    ErrorCode: int16
    ErrorMessage: string? = null

request AlterShareGroupOffsetsRequest 91 versions 0 flexible 0+
  GroupId: string
  Topics: [AlterShareGroupOffsetsRequestTopic]
    TopicName: string
    Partitions: [AlterShareGroupOffsetsRequestPartition]
      PartitionIndex: int32
      StartOffset: int64

response AlterShareGroupOffsetsResponse 91 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
  Responses: [AlterShareGroupOffsetsResponseTopic]
    TopicName: string
    TopicId: uuid
    Partitions: [AlterShareGroupOffsetsResponsePartition]
      PartitionIndex: int32
      ErrorCode: int16
      ErrorMessage: string? = null

request DeleteShareGroupOffsetsRequest 92 versions 0 flexible 0+
  GroupId: string
  Topics: [DeleteShareGroupOffsetsRequestTopic]
    TopicName: string

response DeleteShareGroupOffsetsResponse 92 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
  Responses: [DeleteShareGroupOffsetsResponseTopic]
    TopicName: string
    TopicId: uuid
    ErrorCode: int16
    ErrorMessage: string? = null
"""
