"""Streams groups (KIP-1071).

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request StreamsGroupHeartbeatRequest 88 versions 0-1 flexible 0+
  GroupId: string
  MemberId: string
  MemberEpoch: int32
  EndpointInformationEpoch: int32
  InstanceId: string? = null
  RackId: string? = null
  RebalanceTimeoutMs: int32 = -1
  Topology: Topology? = null
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
  ActiveTasks: [TaskIds]? = null
  StandbyTasks: [TaskIds]? = null
  WarmupTasks: [TaskIds]? = null
  ProcessId: string? = null
  UserEndpoint: Endpoint? = null
  ClientTags: [KeyValue]? = null
  TaskOffsets: [TaskOffset]? = null
  TaskEndOffsets: [TaskOffset]? = null
  ShutdownApplication: bool
  struct TopicInfo
    Name: string
    Partitions: int32
    ReplicationFactor: int16
    TopicConfigs: [KeyValue]
  struct TaskIds
    SubtopologyId: string
    Partitions: [int32]
  struct Endpoint
    Host: string
    Port: uint16
  struct KeyValue
    Key: string
    Value: string
  struct TaskOffset
    SubtopologyId: string
    Partition: int32
    Offset: int64

response StreamsGroupHeartbeatResponse 88 versions 0-1 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
  MemberId: string
  MemberEpoch: int32
  HeartbeatIntervalMs: int32
  AcceptableRecoveryLagLegacy: int32 0
  TaskOffsetIntervalMs: int32
  AcceptableRecoveryLag: int64 1+ = -1 ~
  Status: [Status]?
  ActiveTasks: [TaskIds]? = null
  StandbyTasks: [TaskIds]? = null
  WarmupTasks: [TaskIds]? = null
  TopologyDescriptionRequired: bool 1+
  EndpointInformationEpoch: int32
  PartitionsByUserEndpoint: [EndpointToPartitions]? = null
    UserEndpoint: Endpoint
    ActivePartitions: [TopicPartition]
    StandbyPartitions: [TopicPartition]
  struct Status
    StatusCode: int8
    StatusDetail: string
  struct TaskIds
    SubtopologyId: string
    Partitions: [int32]
  struct Endpoint
    Host: string
    Port: uint16
  struct TopicPartition
    Topic: string
    Partitions: [int32]

request StreamsGroupDescribeRequest 89 versions 0-1 flexible 0+
  GroupIds: [string]
  IncludeAuthorizedOperations: bool
  IncludeTopologyDescription: bool 1+

response StreamsGroupDescribeResponse 89 versions 0-1 flexible 0+
  ThrottleTimeMs: int32
  Groups: [DescribedGroup]
    ErrorCode: int16
    ErrorMessage: string? = null
    GroupId: string
    GroupState: string
    GroupEpoch: int32
    AssignmentEpoch: int32
    Topology: Topology? = null
      Epoch: int32
      Subtopologies: [Subtopology]? = null
        SubtopologyId: string
        SourceTopics: [string]
        RepartitionSinkTopics: [string]
        StateChangelogTopics: [TopicInfo]
        RepartitionSourceTopics: [TopicInfo]
    Members: [Member]
      MemberId: string
      MemberEpoch: int32
      InstanceId: string? = null
      RackId: string? = null
      ClientId: string
      ClientHost: string
      TopologyEpoch: int32
      ProcessId: string
      UserEndpoint: Endpoint? = null
      ClientTags: [KeyValue]
      TaskOffsets: [TaskOffset]
      TaskEndOffsets: [TaskOffset]
      Assignment: Assignment
      TargetAssignment: Assignment
      IsClassic: bool
    AuthorizedOperations: int32 = -2147483648
    TopologyDescription: TopologyDescription? 1+ = null
    TopologyDescriptionStatus: int8 1+
    AssignorName: string? 1+ = null ~
  struct TopicInfo
    Name: string
    Partitions: int32
    ReplicationFactor: int16
    TopicConfigs: [KeyValue]
  struct Endpoint
    Host: string
    Port: uint16
  struct KeyValue
    Key: string
    Value: string
  struct TaskOffset
    SubtopologyId: string
    Partition: int32
    Offset: int64
  struct Assignment
    ActiveTasks: [TaskIds]
    StandbyTasks: [TaskIds]
    WarmupTasks: [TaskIds]
  struct TopologyDescription
    Subtopologies: [TopologyDescriptionSubtopology] 1+
    GlobalStores: [TopologyDescriptionGlobalStore] 1+
  struct TaskIds
    SubtopologyId: string
    Partitions: [int32]
  struct TopologyDescriptionSubtopology
    SubtopologyId: string 1+
    Nodes: [TopologyDescriptionNode] 1+
  struct TopologyDescriptionGlobalStore
    Source: TopologyDescriptionNode 1+
    Processor: TopologyDescriptionNode 1+
  struct TopologyDescriptionNode
    Name: string 1+
    NodeType: int8 1+
    SourceTopics: [string] 1+
    SinkTopic: string? 1+ = null
    Stores: [string] 1+
    Successors: [string] 1+

request StreamsGroupTopologyDescriptionUpdateRequest 93 versions 0 flexible 0+
  GroupId: string
  MemberId: string
  TopologyEpoch: int32
  TopologyDescription: TopologyDescription
  struct TopologyDescription
    Subtopologies: [TopologyDescriptionSubtopology]
    GlobalStores: [TopologyDescriptionGlobalStore]
  struct TopologyDescriptionSubtopology
    SubtopologyId: string
    Nodes: [TopologyDescriptionNode]
  struct TopologyDescriptionGlobalStore
    Source: TopologyDescriptionNode
    Processor: TopologyDescriptionNode
  struct TopologyDescriptionNode
    Name: string
    NodeType: int8
    SourceTopics: [string]
    SinkTopic: string? = null
    Stores: [string]
    Successors: [string]

response StreamsGroupTopologyDescriptionUpdateResponse 93 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
"""
