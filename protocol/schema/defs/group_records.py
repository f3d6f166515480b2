"""Records of __consumer_offsets: offsets, classic groups, consumer groups.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
key LegacyOffsetCommitKey 0 versions 0
  group: string
  topic: string
  partition: int32

value LegacyOffsetCommitValue 0 versions 0
  offset: int64
  metadata: string
  commitTimestamp: int64

key OffsetCommitKey 1 versions 0
  group: string
  topic: string
  partition: int32

value OffsetCommitValue 1 versions 0-4 flexible 4+
  offset: int64
  leaderEpoch: int32 3+ = -1 ~
  metadata: string
  commitTimestamp: int64
  expireTimestamp: int64 1 = -1 ~
  topicId: uuid 4+ tag 0 ~

key GroupMetadataKey 2 versions 0
  group: string

value GroupMetadataValue 2 versions 0-4 flexible 4+
  protocolType: string
  generation: int32
  protocol: string?
  leader: string?
  currentStateTimestamp: int64 2+ = -1 ~
  members: [MemberMetadata]
  struct MemberMetadata
    memberId: string
    groupInstanceId: string? 3+ = null ~
    clientId: string
    clientHost: string
    rebalanceTimeout: int32 1+ = -1 ~
    sessionTimeout: int32
    subscription: bytes
    assignment: bytes

key ConsumerGroupMetadataKey 3 versions 0
  GroupId: string

value ConsumerGroupMetadataValue 3 versions 0 flexible 0+
  Epoch: int32
  MetadataHash: int64 tag 0

key ConsumerGroupPartitionMetadataKey 4 versions 0
  GroupId: string

value ConsumerGroupPartitionMetadataValue 4 versions 0 flexible 0+
  Topics: [TopicMetadata]
    TopicId: uuid
    TopicName: string
    NumPartitions: int32
    PartitionMetadata: [PartitionMetadata]
      Partition: int32
      Racks: [string]

key ConsumerGroupMemberMetadataKey 5 versions 0
  GroupId: string
  MemberId: string

value ConsumerGroupMemberMetadataValue 5 versions 0 flexible 0+
  InstanceId: string?
  RackId: string?
  ClientId: string
  ClientHost: string
  SubscribedTopicNames: [string]
  SubscribedTopicRegex: string?
  RebalanceTimeoutMs: int32 = -1
  ServerAssignor: string?
  ClassicMemberMetadata: ClassicMemberMetadata? tag 0
    SessionTimeoutMs: int32
    SupportedProtocols: [ClassicProtocol]
      Name: string
      Metadata: bytes

key ConsumerGroupTargetAssignmentMetadataKey 6 versions 0
  GroupId: string

value ConsumerGroupTargetAssignmentMetadataValue 6 versions 0 flexible 0+
  AssignmentEpoch: int32
  AssignmentTimestamp: int64 tag 0 ~

key ConsumerGroupTargetAssignmentMemberKey 7 versions 0
  GroupId: string
  MemberId: string

value ConsumerGroupTargetAssignmentMemberValue 7 versions 0 flexible 0+
  TopicPartitions: [TopicPartition]
    TopicId: uuid
    Partitions: [int32]

key ConsumerGroupCurrentMemberAssignmentKey 8 versions 0
  GroupId: string
  MemberId: string

value ConsumerGroupCurrentMemberAssignmentValue 8 versions 0 flexible 0+
  MemberEpoch: int32
  PreviousMemberEpoch: int32
  State: int8
  AssignedPartitions: [TopicPartitions]
  PartitionsPendingRevocation: [TopicPartitions]
  struct TopicPartitions
    TopicId: uuid
    Partitions: [int32]
    AssignmentEpochs: [int32]? tag 0

key ConsumerGroupRegularExpressionKey 16 versions 0
  GroupId: string
  RegularExpression: string

value ConsumerGroupRegularExpressionValue 16 versions 0 flexible 0+
  Topics: [string]
  Version: int64
  Timestamp: int64
"""
