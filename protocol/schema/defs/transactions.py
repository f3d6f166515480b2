"""Producer ids and transactions.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request InitProducerIdRequest 22 versions 0-5 flexible 2+
  TransactionalId: string?
  TransactionTimeoutMs: int32
  ProducerId: int64 3+ = -1
  ProducerEpoch: int16 3+ = -1

response InitProducerIdResponse 22 versions 0-5 flexible 2+
  ThrottleTimeMs: int32 ~
  ErrorCode: int16
  ProducerId: int64 = -1
  ProducerEpoch: int16

request AddPartitionsToTxnRequest 24 versions 0-5 flexible 3+
  Transactions: [AddPartitionsToTxnTransaction] 4+
    TransactionalId: string
    ProducerId: int64
    ProducerEpoch: int16
    VerifyOnly: bool
    Topics: [AddPartitionsToTxnTopic]
  V3AndBelowTransactionalId: string 0-3
  V3AndBelowProducerId: int64 0-3
  V3AndBelowProducerEpoch: int16 0-3
  V3AndBelowTopics: [AddPartitionsToTxnTopic] 0-3
  struct AddPartitionsToTxnTopic
    Name: string
    Partitions: [int32]

response AddPartitionsToTxnResponse 24 versions 0-5 flexible 3+
  ThrottleTimeMs: int32
  ErrorCode: int16 4+ ~
  ResultsByTransaction: [AddPartitionsToTxnResult] 4+
    TransactionalId: string
    TopicResults: [AddPartitionsToTxnTopicResult]
  ResultsByTopicV3AndBelow: [AddPartitionsToTxnTopicResult] 0-3
  struct AddPartitionsToTxnTopicResult
    Name: string
    ResultsByPartition: [AddPartitionsToTxnPartitionResult]
  struct AddPartitionsToTxnPartitionResult
    PartitionIndex: int32
    PartitionErrorCode: int16

request AddOffsetsToTxnRequest 25 versions 0-4 flexible 3+
  TransactionalId: string
  ProducerId: int64
  ProducerEpoch: int16
  GroupId: string

response AddOffsetsToTxnResponse 25 versions 0-4 flexible 3+
  ThrottleTimeMs: int32
  ErrorCode: int16

request EndTxnRequest 26 versions 0-5 flexible 3+
  TransactionalId: string
  ProducerId: int64
  ProducerEpoch: int16
  Committed: bool

response EndTxnResponse 26 versions 0-5 flexible 3+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ProducerId: int64 5+ = -1 ~
  ProducerEpoch: int16 5+ = -1 ~

request WriteTxnMarkersRequest 27 versions 0-2 flexible 1+
  Markers: [WritableTxnMarker]
    ProducerId: int64
    ProducerEpoch: int16
    TransactionResult: bool
    Topics: [WritableTxnMarkerTopic]
      Name: string
      PartitionIndexes: [int32]
    CoordinatorEpoch: int32
    TransactionVersion: int8 2+ ~

response WriteTxnMarkersResponse 27 versions 0-2 flexible 1+
  Markers: [WritableTxnMarkerResult]
    ProducerId: int64
    Topics: [WritableTxnMarkerTopicResult]
      Name: string
      Partitions: [WritableTxnMarkerPartitionResult]
        PartitionIndex: int32
        ErrorCode: int16

request TxnOffsetCommitRequest 28 versions 0-6 flexible 3+
  TransactionalId: string
  GroupId: string
  ProducerId: int64
  ProducerEpoch: int16
  GenerationIdOrMemberEpoch: int32 3+ = -1
  MemberId: string 3+
  GroupInstanceId: string? 3+ = null
  Topics: [TxnOffsetCommitRequestTopic]
    Name: string 0-5 ~
    TopicId: uuid 6+ ~
    Partitions: [TxnOffsetCommitRequestPartition]
      PartitionIndex: int32
      CommittedOffset: int64
      CommittedLeaderEpoch: int32 2+ = -1 ~
      CommittedMetadata: string?

response TxnOffsetCommitResponse 28 versions 0-6 flexible 3+
  ThrottleTimeMs: int32
  Topics: [TxnOffsetCommitResponseTopic]
    Name: string 0-5 ~
    TopicId: uuid 6+ ~
    Partitions: [TxnOffsetCommitResponsePartition]
      PartitionIndex: int32
      ErrorCode: int16

request DescribeProducersRequest 61 versions 0 flexible 0+
  Topics: [TopicRequest]
    Name: string
    PartitionIndexes: [int32]

response DescribeProducersResponse 61 versions 0 flexible 0+
  ThrottleTimeMs: int32
  Topics: [TopicResponse]
    Name: string
    Partitions: [PartitionResponse]
      PartitionIndex: int32
      ErrorCode: int16
      ErrorMessage: string? = null
      ActiveProducers: [ProducerState]
        ProducerId: int64
        ProducerEpoch: int32
        LastSequence: int32 = -1
        LastTimestamp: int64 = -1
        CoordinatorEpoch: int32
        CurrentTxnStartOffset: int64 = -1

request DescribeTransactionsRequest 65 versions 0 flexible 0+
  TransactionalIds: [string]

response DescribeTransactionsResponse 65 versions 0 flexible 0+
  ThrottleTimeMs: int32
  TransactionStates: [TransactionState]
    ErrorCode: int16
    TransactionalId: string
    TransactionState: string
    TransactionTimeoutMs: int32
    TransactionStartTimeMs: int64
    ProducerId: int64
    ProducerEpoch: int16
    Topics: [TopicData]
      Topic: string
      Partitions: [int32]

request ListTransactionsRequest 66 versions 0-2 flexible 0+
  StateFilters: [string]
  ProducerIdFilters: [int64]
  DurationFilter: int64 1+ = -1
  TransactionalIdPattern: string? 2+ = null

response ListTransactionsResponse 66 versions 0-2 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  UnknownStateFilters: [string]
  TransactionStates: [TransactionState]
    TransactionalId: string
    ProducerId: int64
    TransactionState: string
"""
