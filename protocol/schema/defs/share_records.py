"""Records of share groups: in __consumer_offsets, and of __share_group_state.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
key ShareGroupMetadataKey 11 versions 0
  GroupId: string

value ShareGroupMetadataValue 11 versions 0 flexible 0+
  Epoch: int32
  MetadataHash: int64

key ShareGroupMemberMetadataKey 10 versions 0
  GroupId: string
  MemberId: string

value ShareGroupMemberMetadataValue 10 versions 0 flexible 0+
  RackId: string?
  ClientId: string
  ClientHost: string
  SubscribedTopicNames: [string]

key ShareGroupTargetAssignmentMetadataKey 12 versions 0
  GroupId: string

value ShareGroupTargetAssignmentMetadataValue 12 versions 0 flexible 0+
  AssignmentEpoch: int32
  AssignmentTimestamp: int64 tag 0 ~

key ShareGroupTargetAssignmentMemberKey 13 versions 0
  GroupId: string
  MemberId: string

value ShareGroupTargetAssignmentMemberValue 13 versions 0 flexible 0+
  TopicPartitions: [TopicPartition]
    TopicId: uuid
    Partitions: [int32]

key ShareGroupCurrentMemberAssignmentKey 14 versions 0
  GroupId: string
  MemberId: string

value ShareGroupCurrentMemberAssignmentValue 14 versions 0 flexible 0+
  MemberEpoch: int32
  PreviousMemberEpoch: int32
  State: int8
  AssignedPartitions: [TopicPartitions]
  struct TopicPartitions
    TopicId: uuid
    Partitions: [int32]

key ShareGroupStatePartitionMetadataKey 15 versions 0
  GroupId: string

value ShareGroupStatePartitionMetadataValue 15 versions 0 flexible 0+
  InitializingTopics: [TopicPartitionsInfo]
  InitializedTopics: [TopicPartitionsInfo]
  DeletingTopics: [TopicInfo]
  struct TopicPartitionsInfo
    TopicId: uuid
    TopicName: string
    Partitions: [int32]
  struct TopicInfo
    TopicId: uuid
    TopicName: string

key ShareSnapshotKey 0 versions 0
  GroupId: string
  TopicId: uuid
  Partition: int32

value ShareSnapshotValue 0 versions 0 flexible 0+
  SnapshotEpoch: int32
  StateEpoch: int32
  LeaderEpoch: int32
  StartOffset: int64
  DeliveryCompleteCount: int32 tag 0 = -1
  CreateTimestamp: int64
  WriteTimestamp: int64
  StateBatches: [StateBatch]
    FirstOffset: int64
    LastOffset: int64
    DeliveryState: int8
    DeliveryCount: int16

key ShareUpdateKey 1 versions 0
  GroupId: string
  TopicId: uuid
  Partition: int32

value ShareUpdateValue 1 versions 0 flexible 0+
  SnapshotEpoch: int32
  LeaderEpoch: int32
  StartOffset: int64
  DeliveryCompleteCount: int32 tag 0 = -1
  StateBatches: [StateBatch]
    FirstOffset: int64
    LastOffset: int64
    DeliveryState: int8
    DeliveryCount: int16
"""
