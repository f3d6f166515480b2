"""Between brokers and their controller (the protocol of ZooKeeper mode).

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request LeaderAndIsrRequest 4 versions 0-7 flexible 4+
  ControllerId: int32
  isKRaftController: bool 7+
  ControllerEpoch: int32
  BrokerEpoch: int64 2+ = -1 ~
  Type: int8 5+
  UngroupedPartitionStates: [LeaderAndIsrPartitionState] 0-1
  TopicStates: [LeaderAndIsrTopicState] 2+
    TopicName: string
    TopicId: uuid 5+ ~
    PartitionStates: [LeaderAndIsrPartitionState]
  LiveLeaders: [LeaderAndIsrLiveLeader]
    BrokerId: int32
    HostName: string
    Port: int32
  struct LeaderAndIsrPartitionState
    TopicName: string 0-1 ~
    PartitionIndex: int32
    ControllerEpoch: int32
    Leader: int32
    LeaderEpoch: int32
    Isr: [int32]
    PartitionEpoch: int32
    Replicas: [int32]
    AddingReplicas: [int32] 3+ ~
    RemovingReplicas: [int32] 3+ ~
    IsNew: bool 1+ ~
    LeaderRecoveryState: int8 6+

response LeaderAndIsrResponse 4 versions 0-7 flexible 4+
  ErrorCode: int16
  PartitionErrors: [LeaderAndIsrPartitionError] 0-4
  Topics: [LeaderAndIsrTopicError] 5+
    TopicId: uuid
    PartitionErrors: [LeaderAndIsrPartitionError]
  struct LeaderAndIsrPartitionError
    TopicName: string 0-4 ~
    PartitionIndex: int32
    ErrorCode: int16

request StopReplicaRequest 5 versions 0-4 flexible 2+
  ControllerId: int32
  isKRaftController: bool 4+
  ControllerEpoch: int32
  BrokerEpoch: int64 1+ = -1 ~
  DeletePartitions: bool 0-2
  UngroupedPartitions: [StopReplicaPartitionV0] 0
    TopicName: string
    PartitionIndex: int32
  Topics: [StopReplicaTopicV1] 1-2
    Name: string
    PartitionIndexes: [int32]
  TopicStates: [StopReplicaTopicState] 3+
    TopicName: string
    PartitionStates: [StopReplicaPartitionState]
      PartitionIndex: int32
      LeaderEpoch: int32 = -1
      DeletePartition: bool

response StopReplicaResponse 5 versions 0-4 flexible 2+
  ErrorCode: int16
  PartitionErrors: [StopReplicaPartitionError]
    TopicName: string
    PartitionIndex: int32
    ErrorCode: int16

request UpdateMetadataRequest 6 versions 0-8 flexible 6+
  ControllerId: int32
  isKRaftController: bool 8+
  Type: int8 8+ tag 0
  ControllerEpoch: int32
  BrokerEpoch: int64 5+ = -1 ~
  UngroupedPartitionStates: [UpdateMetadataPartitionState] 0-4
  TopicStates: [UpdateMetadataTopicState] 5+
    TopicName: string
    TopicId: uuid 7+ ~
    PartitionStates: [UpdateMetadataPartitionState]
  LiveBrokers: [UpdateMetadataBroker]
    Id: int32
    V0Host: string 0 ~
    V0Port: int32 0 ~
    Endpoints: [UpdateMetadataEndpoint] 1+ ~
      Port: int32
      Host: string
      Listener: string 3+ ~
      SecurityProtocol: int16
    Rack: string? 2+ ~
  struct UpdateMetadataPartitionState
    TopicName: string 0-4 ~
    PartitionIndex: int32
    ControllerEpoch: int32
    Leader: int32
    LeaderEpoch: int32
    Isr: [int32]
    ZkVersion: int32
    Replicas: [int32]
    OfflineReplicas: [int32] 4+ ~

response UpdateMetadataResponse 6 versions 0-8 flexible 6+
  ErrorCode: int16

request ControlledShutdownRequest 7 versions 0-3 flexible 3+
  BrokerId: int32
  BrokerEpoch: int64 2+ = -1 ~

response ControlledShutdownResponse 7 versions 0-3 flexible 3+
  ErrorCode: int16
  RemainingPartitions: [RemainingPartition]
    TopicName: string
    PartitionIndex: int32

request AlterPartitionRequest 56 versions 0-3 flexible 0+
  BrokerId: int32
  BrokerEpoch: int64 = -1
  Topics: [TopicData]
    TopicName: string 0-1 ~
    TopicId: uuid 2+ ~
    Partitions: [PartitionData]
      PartitionIndex: int32
      LeaderEpoch: int32
      NewIsr: [int32] 0-2
      NewIsrWithEpochs: [BrokerState] 3+
        BrokerId: int32
        BrokerEpoch: int64 = -1
      LeaderRecoveryState: int8 1+
      PartitionEpoch: int32

response AlterPartitionResponse 56 versions 0-3 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  Topics: [TopicData]
    TopicName: string 0-1 ~
    TopicId: uuid 2+ ~
    Partitions: [PartitionData]
      PartitionIndex: int32
      ErrorCode: int16
      LeaderId: int32
      LeaderEpoch: int32
      Isr: [int32]
      LeaderRecoveryState: int8 1+ ~
      PartitionEpoch: int32

request EnvelopeRequest 58 versions 0 flexible 0+
  RequestData: bytes
  RequestPrincipal: bytes?
  ClientHostAddress: bytes

response EnvelopeResponse 58 versions 0 flexible 0+
  ResponseData: bytes? = null
  ErrorCode: int16

request AllocateProducerIdsRequest 67 versions 0 flexible 0+
  BrokerId: int32
  BrokerEpoch: int64 = -1

response AllocateProducerIdsResponse 67 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ProducerIdStart: int64
  ProducerIdLen: int32

data DefaultPrincipalData versions 0 flexible 0+
  Type: string
  Name: string
  TokenAuthenticated: bool
"""
