"""Records of streams groups in __consumer_offsets.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
key StreamsGroupMetadataKey 17 versions 0
  GroupId: string

value StreamsGroupMetadataValue 17 versions 0 flexible 0+
  Epoch: int32
  MetadataHash: int64
  ValidatedTopologyEpoch: int32 tag 0 = -1
  LastAssignmentConfigs: [LastAssignmentConfig]? tag 1
  StoredDescriptionTopologyEpoch: int32 tag 2 = -1
  FailedDescriptionTopologyEpoch: int32 tag 3 = -1
  struct LastAssignmentConfig
    Key: string
    Value: string

key StreamsGroupMemberMetadataKey 19 versions 0
  GroupId: string
  MemberId: string

value StreamsGroupMemberMetadataValue 19 versions 0 flexible 0+
  InstanceId: string?
  RackId: string?
  ClientId: string
  ClientHost: string
  RebalanceTimeoutMs: int32 = -1
  TopologyEpoch: int32
  ProcessId: string
  UserEndpoint: Endpoint? = null
  ClientTags: [KeyValue]
  struct Endpoint
    Host: string
    Port: uint16
  struct KeyValue
    Key: string
    Value: string

key StreamsGroupTargetAssignmentMetadataKey 20 versions 0
  GroupId: string

value StreamsGroupTargetAssignmentMetadataValue 20 versions 0 flexible 0+
  AssignmentEpoch: int32
  AssignmentTimestamp: int64 tag 0 ~

key StreamsGroupTargetAssignmentMemberKey 21 versions 0
  GroupId: string
  MemberId: string

value StreamsGroupTargetAssignmentMemberValue 21 versions 0 flexible 0+
  ActiveTasks: [TaskIds]
  StandbyTasks: [TaskIds]
  WarmupTasks: [TaskIds]
  struct TaskIds
    SubtopologyId: string
    Partitions: [int32]

key StreamsGroupCurrentMemberAssignmentKey 22 versions 0
  GroupId: string
  MemberId: string

value StreamsGroupCurrentMemberAssignmentValue 22 versions 0 flexible 0+
  MemberEpoch: int32
  PreviousMemberEpoch: int32
  State: int8
  ActiveTasks: [TaskIds]
  StandbyTasks: [TaskIds]
  WarmupTasks: [TaskIds]
  ActiveTasksPendingRevocation: [TaskIds]
  StandbyTasksPendingRevocation: [TaskIds]
  WarmupTasksPendingRevocation: [TaskIds]
  struct TaskIds
    SubtopologyId: string
    Partitions: [int32]
    AssignmentEpochs: [int32]? tag 0

key StreamsGroupTopologyKey 23 versions 0
  GroupId: string

value StreamsGroupTopologyValue 23 versions 0 flexible 0+
  Epoch: int32
  Subtopologies: [Subtopology]
    SubtopologyId: string
    SourceTopics: [string]
    SourceTopicRegex: [string]
    StateChangelogTopics: [TopicInfo]
    RepartitionSinkTopics: [string]
    RepartitionSourceTopics: [TopicInfo]
    CopartitionGroups: [CopartitionGroup]
      SourceTopics: [int16]
      SourceTopicRegex: [int16]
      RepartitionSourceTopics: [int16]
  struct TopicInfo
    Name: string
    Partitions: int32
    ReplicationFactor: int16
    TopicConfigs: [TopicConfig]
  struct TopicConfig
    key: string
    value: string
"""
