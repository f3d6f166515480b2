"""Reading and writing records.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request ProduceRequest 0 versions 0-13 flexible 9+
  TransactionalId: string? 3+ = null
  Acks: int16
  TimeoutMs: int32
  TopicData: [TopicProduceData]
    Name: string 0-12 ~
    TopicId: uuid 13+ ~
    PartitionData: [PartitionProduceData]
      Index: int32
      Records: records?

response ProduceResponse 0 versions 0-13 flexible 9+
  Responses: [TopicProduceResponse]
    Name: string 0-12 ~
    TopicId: uuid 13+ ~
    PartitionResponses: [PartitionProduceResponse]
      Index: int32
      ErrorCode: int16
      BaseOffset: int64
      LogAppendTimeMs: int64 2+ = -1 ~
      LogStartOffset: int64 5+ = -1 ~
      RecordErrors: [BatchIndexAndErrorMessage] 8+ ~
        BatchIndex: int32
        BatchIndexErrorMessage: string? = null
      ErrorMessage: string? 8+ = null ~
      CurrentLeader: LeaderIdAndEpoch 10+ tag 0
        LeaderId: int32 = -1
        LeaderEpoch: int32 = -1
  ThrottleTimeMs: int32 1+ ~
  NodeEndpoints: [NodeEndpoint] 10+ tag 0
    NodeId: int32
    Host: string
    Port: int32
    Rack: string? = null

request FetchRequest 1 versions 0-18 flexible 12+
  ClusterId: string? 12+ tag 0 = null ~
  ReplicaId: int32 0-14 = -1
  ReplicaState: ReplicaState 15+ tag 1
    ReplicaId: int32 = -1
    ReplicaEpoch: int64 = -1
  MaxWaitMs: int32
  MinBytes: int32
  MaxBytes: int32 3+ = 2147483647 ~
  IsolationLevel: int8 4+ ~
  SessionId: int32 7+ ~
  SessionEpoch: int32 7+ = -1 ~
  Topics: [FetchTopic]
    Topic: string 0-12 ~
    TopicId: uuid 13+ ~
    Partitions: [FetchPartition]
      Partition: int32
      CurrentLeaderEpoch: int32 9+ = -1 ~
      FetchOffset: int64
      LastFetchedEpoch: int32 12+ = -1
      LogStartOffset: int64 5+ = -1 ~
      PartitionMaxBytes: int32
      ReplicaDirectoryId: uuid 17+ tag 0 ~
      HighWatermark: int64 18+ tag 1 = 9223372036854775807 ~
  ForgottenTopicsData: [ForgottenTopic] 7+
    Topic: string 7-12 ~
    TopicId: uuid 13+ ~
    Partitions: [int32]
  RackId: string 11+ ~

response FetchResponse 1 versions 0-18 flexible 12+
  ThrottleTimeMs: int32 1+ ~
  ErrorCode: int16 7+ ~
  SessionId: int32 7+
  Responses: [FetchableTopicResponse]
    Topic: string 0-12 ~
    TopicId: uuid 13+ ~
    Partitions: [PartitionData]
      PartitionIndex: int32
      ErrorCode: int16
      HighWatermark: int64
      LastStableOffset: int64 4+ = -1 ~
      LogStartOffset: int64 5+ = -1 ~
      DivergingEpoch: EpochEndOffset 12+ tag 0
        Epoch: int32 = -1
        EndOffset: int64 = -1
      CurrentLeader: LeaderIdAndEpoch 12+ tag 1
        LeaderId: int32 = -1
        LeaderEpoch: int32 = -1
      SnapshotId: SnapshotId 12+ tag 2
        EndOffset: int64 = -1
        Epoch: int32 = -1
      AbortedTransactions: [AbortedTransaction]? 4+ ~
        ProducerId: int64
        FirstOffset: int64
      PreferredReadReplica: int32 11+ = -1
      Records: records?
  NodeEndpoints: [NodeEndpoint] 16+ tag 0
    NodeId: int32
    Host: string
    Port: int32
    Rack: string? = null

request ListOffsetsRequest 2 versions 0-11 flexible 6+
  ReplicaId: int32
  IsolationLevel: int8 2+
  Topics: [ListOffsetsTopic]
    Name: string
    Partitions: [ListOffsetsPartition]
      PartitionIndex: int32
      CurrentLeaderEpoch: int32 4+ = -1 ~
      Timestamp: int64
      MaxNumOffsets: int32 0 = 1
  TimeoutMs: int32 10+ ~

response ListOffsetsResponse 2 versions 0-11 flexible 6+
  ThrottleTimeMs: int32 2+ ~
  Topics: [ListOffsetsTopicResponse]
    Name: string
    Partitions: [ListOffsetsPartitionResponse]
      PartitionIndex: int32
      ErrorCode: int16
      OldStyleOffsets: [int64] 0
      Timestamp: int64 1+ = -1
      Offset: int64 1+ = -1
      LeaderEpoch: int32 4+ = -1

request OffsetForLeaderEpochRequest 23 versions 0-4 flexible 4+
  ReplicaId: int32 3+ = -2 ~
  Topics: [OffsetForLeaderTopic]
    Topic: string
    Partitions: [OffsetForLeaderPartition]
      Partition: int32
      CurrentLeaderEpoch: int32 2+ = -1 ~
      LeaderEpoch: int32

response OffsetForLeaderEpochResponse 23 versions 0-4 flexible 4+
  ThrottleTimeMs: int32 2+ ~
  Topics: [OffsetForLeaderTopicResult]
    Topic: string
    Partitions: [EpochEndOffset]
      ErrorCode: int16
      Partition: int32
      LeaderEpoch: int32 1+ = -1 ~
      EndOffset: int64 = -1

request DeleteRecordsRequest 21 versions 0-2 flexible 2+
  Topics: [DeleteRecordsTopic]
    Name: string
    Partitions: [DeleteRecordsPartition]
      PartitionIndex: int32
      Offset: int64
  TimeoutMs: int32

response DeleteRecordsResponse 21 versions 0-2 flexible 2+
  ThrottleTimeMs: int32
  Topics: [DeleteRecordsTopicResult]
    Name: string
    Partitions: [DeleteRecordsPartitionResult]
      PartitionIndex: int32
      LowWatermark: int64
      ErrorCode: int16
"""
