"""Classic groups, and the listing and deletion of groups of any kind.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request JoinGroupRequest 11 versions 0-9 flexible 6+
  GroupId: string
  SessionTimeoutMs: int32
  RebalanceTimeoutMs: int32 1+ = -1 ~
  MemberId: string
  GroupInstanceId: string? 5+ = null
  ProtocolType: string
  Protocols: [JoinGroupRequestProtocol]
    Name: string
    Metadata: bytes
  Reason: string? 8+ = null ~

response JoinGroupResponse 11 versions 0-9 flexible 6+
  ThrottleTimeMs: int32 2+ ~
  ErrorCode: int16
  GenerationId: int32 = -1
  ProtocolType: string? 7+ = null ~
  ProtocolName: string?7+
  Leader: string
  SkipAssignment: bool 9+
  MemberId: string
  Members: [JoinGroupResponseMember]
    MemberId: string
    GroupInstanceId: string? 5+ = null ~
    Metadata: bytes

request SyncGroupRequest 14 versions 0-5 flexible 4+
  GroupId: string
  GenerationId: int32
  MemberId: string
  GroupInstanceId: string? 3+ = null
  ProtocolType: string? 5+ = null ~
  ProtocolName: string? 5+ = null ~
  Assignments: [SyncGroupRequestAssignment]
    MemberId: string
    Assignment: bytes

response SyncGroupResponse 14 versions 0-5 flexible 4+
  ThrottleTimeMs: int32 1+ ~
  ErrorCode: int16
  ProtocolType: string? 5+ = null ~
  ProtocolName: string? 5+ = null ~
  Assignment: bytes

request HeartbeatRequest 12 versions 0-4 flexible 4+
  GroupId: string
  GenerationId: int32
  MemberId: string
  GroupInstanceId: string? 3+ = null

response HeartbeatResponse 12 versions 0-4 flexible 4+
  ThrottleTimeMs: int32 1+ ~
  ErrorCode: int16

request LeaveGroupRequest 13 versions 0-5 flexible 4+
  GroupId: string
  MemberId: string 0-2
  Members: [MemberIdentity] 3+
    MemberId: string
    GroupInstanceId: string? = null
    Reason: string? 5+ = null ~

response LeaveGroupResponse 13 versions 0-5 flexible 4+
  ThrottleTimeMs: int32 1+ ~
  ErrorCode: int16
  Members: [MemberResponse] 3+
    MemberId: string
    GroupInstanceId: string?
    ErrorCode: int16

request DescribeGroupsRequest 15 versions 0-6 flexible 5+
  Groups: [string]
  IncludeAuthorizedOperations: bool 3+

response DescribeGroupsResponse 15 versions 0-6 flexible 5+
  ThrottleTimeMs: int32 1+ ~
  Groups: [DescribedGroup]
    ErrorCode: int16
    ErrorMessage: string? 6+ = null
    GroupId: string
    GroupState: string
    ProtocolType: string
    ProtocolData: string
    Members: [DescribedGroupMember]
      MemberId: string
      GroupInstanceId: string? 4+ = null ~
      ClientId: string
      ClientHost: string
      MemberMetadata: bytes
      MemberAssignment: bytes
    AuthorizedOperations: int32 3+ = -2147483648

request ListGroupsRequest 16 versions 0-5 flexible 3+
  StatesFilter: [string] 4+
  TypesFilter: [string] 5+

response ListGroupsResponse 16 versions 0-5 flexible 3+
  ThrottleTimeMs: int32 1+ ~
  ErrorCode: int16
  Groups: [ListedGroup]
    GroupId: string
    ProtocolType: string
    GroupState: string 4+ ~
    GroupType: string 5+ ~

request DeleteGroupsRequest 42 versions 0-3 flexible 2+
  GroupsNames: [string]

response DeleteGroupsResponse 42 versions 0-3 flexible 2+
  ThrottleTimeMs: int32
  Results: [DeletableGroupResult]
    GroupId: string
    ErrorCode: int16
    ErrorMessage: string? 3+ = null ~

data ConsumerProtocolSubscription versions 0-3
  Topics: [string]
  UserData: bytes? = null
  OwnedPartitions: [TopicPartition] 1+ ~
    Topic: string
    Partitions: [int32]
  GenerationId: int32 2+ = -1 ~
  RackId: string? 3+ = null ~

data ConsumerProtocolAssignment versions 0-3
  AssignedPartitions: [TopicPartition]
    Topic: string
    Partitions: [int32]
  UserData: bytes? = null
"""
