"""What the cluster is and can do.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request MetadataRequest 3 versions 0-13 flexible 9+
  Topics: [MetadataRequestTopic]?1+
    TopicId: uuid 10+ ~
    Name: string?10+
  AllowAutoTopicCreation: bool 4+ = true
  IncludeClusterAuthorizedOperations: bool 8-10
  IncludeTopicAuthorizedOperations: bool 8+

response MetadataResponse 3 versions 0-13 flexible 9+
  ThrottleTimeMs: int32 3+ ~
  Brokers: [MetadataResponseBroker]
    NodeId: int32
    Host: string
    Port: int32
    Rack: string? 1+ = null ~
  ClusterId: string? 2+ = null ~
  ControllerId: int32 1+ = -1 ~
  Topics: [MetadataResponseTopic]
    ErrorCode: int16
    Name: string?12+
    TopicId: uuid 10+ ~
    IsInternal: bool 1+ ~
    Partitions: [MetadataResponsePartition]
      ErrorCode: int16
      PartitionIndex: int32
      LeaderId: int32
      LeaderEpoch: int32 7+ = -1 ~
      ReplicaNodes: [int32]
      IsrNodes: [int32]
      OfflineReplicas: [int32] 5+ ~
    TopicAuthorizedOperations: int32 8+ = -2147483648
  ClusterAuthorizedOperations: int32 8-10 = -2147483648
  ErrorCode: int16 13+ ~

request ApiVersionsRequest 18 versions 0-5 flexible 3+
  ClientSoftwareName: string 3+ ~
  ClientSoftwareVersion: string 3+ ~
  ClusterId: string? 5+ = null ~
  NodeId: int32 5+ = -1 ~

response ApiVersionsResponse 18 versions 0-5 flexible 3+
  ErrorCode: int16
  ApiKeys: [ApiVersion]
    ApiKey: int16
    MinVersion: int16
    MaxVersion: int16
  ThrottleTimeMs: int32 1+ ~
  SupportedFeatures: [SupportedFeatureKey] 3+ tag 0 ~
    Name: string
    MinVersion: int16
    MaxVersion: int16
  FinalizedFeaturesEpoch: int64 3+ tag 1 = -1 ~
  FinalizedFeatures: [FinalizedFeatureKey] 3+ tag 2 ~
    Name: string
    MaxVersionLevel: int16
    MinVersionLevel: int16
  ZkMigrationReady: bool 3+ tag 3 ~

request DescribeClusterRequest 60 versions 0-2 flexible 0+
  IncludeClusterAuthorizedOperations: bool
  EndpointType: int8 1+ = 1
  IncludeFencedBrokers: bool 2+

response DescribeClusterResponse 60 versions 0-2 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string? = null
  EndpointType: int8 1+ = 1
  ClusterId: string
  ControllerId: int32 = -1
  Brokers: [DescribeClusterBroker]
    BrokerId: int32
    Host: string
    Port: int32
    Rack: string? = null
    IsFenced: bool 2+
  ClusterAuthorizedOperations: int32 = -2147483648

request DescribeTopicPartitionsRequest 75 versions 0 flexible 0+
  Topics: [TopicRequest]
    Name: string
  ResponsePartitionLimit: int32 = 2000
  Cursor: Cursor? = null
    TopicName: string
    PartitionIndex: int32

response DescribeTopicPartitionsResponse 75 versions 0 flexible 0+
  ThrottleTimeMs: int32 ~
  Topics: [DescribeTopicPartitionsResponseTopic]
    ErrorCode: int16
    Name: string?
    TopicId: uuid ~
    IsInternal: bool ~
    Partitions: [DescribeTopicPartitionsResponsePartition]
      ErrorCode: int16
      PartitionIndex: int32
      LeaderId: int32
      LeaderEpoch: int32 = -1 ~
      ReplicaNodes: [int32]
      IsrNodes: [int32]
      EligibleLeaderReplicas: [int32]? = null
      LastKnownElr: [int32]? = null
      OfflineReplicas: [int32] ~
    TopicAuthorizedOperations: int32 = -2147483648
  NextCursor: Cursor? = null
    TopicName: string
    PartitionIndex: int32

request UpdateFeaturesRequest 57 versions 0-2 flexible 0+
  timeoutMs: int32 = 60000
  FeatureUpdates: [FeatureUpdateKey]
    Feature: string
    MaxVersionLevel: int16
    AllowDowngrade: bool 0
    UpgradeType: int8 1+ = 1
  ValidateOnly: bool 1+

response UpdateFeaturesResponse 57 versions 0-2 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string?
  Results: [UpdatableFeatureResult] 0-1 ~
    Feature: string
    ErrorCode: int16
    ErrorMessage: string?
"""
