"""Consumer groups of KIP-848.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request ConsumerGroupHeartbeatRequest 68 versions 0-1 flexible 0+
  GroupId: string
  MemberId: string
  MemberEpoch: int32
  InstanceId: string? = null
  RackId: string? = null
  RebalanceTimeoutMs: int32 = -1
  SubscribedTopicNames: [string]? = null
  SubscribedTopicRegex: string? 1+ = null
  ServerAssignor: string? = null
  TopicPartitions: [TopicPartitions]? = null
    TopicId: uuid
    Partitions: [int32]

response ConsumerGroupHeartbeatResponse 68 versions 0-1 flexible 0+
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

request ConsumerGroupDescribeRequest 69 versions 0-1 flexible 0+
  GroupIds: [string]
  IncludeAuthorizedOperations: bool

response ConsumerGroupDescribeResponse 69 versions 0-1 flexible 0+
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
      InstanceId: string? = null
      RackId: string? = null
      MemberEpoch: int32
      ClientId: string
      ClientHost: string
      SubscribedTopicNames: [string]
      SubscribedTopicRegex: string? = null
      Assignment: Assignment
      TargetAssignment: Assignment
      MemberType: int8 1+ = -1 ~
    AuthorizedOperations: int32 = -2147483648
  struct Assignment
    TopicPartitions: [TopicPartitions]
  struct TopicPartitions
    TopicId: uuid
    TopicName: string
    Partitions: [int32]
"""
