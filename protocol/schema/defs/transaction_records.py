"""Records of __transaction_state, and of __remote_log_metadata.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
key TransactionLogKey 0 versions 0
  TransactionalId: string

value TransactionLogValue 0 versions 0-1 flexible 1+
  ProducerId: int64
  PreviousProducerId: int64 1+ tag 0 = -1
  NextProducerId: int64 1+ tag 1 = -1
  ProducerEpoch: int16
  NextProducerEpoch: int16 1+ tag 3 = -1
  TransactionTimeoutMs: int32
  TransactionStatus: int8
  TransactionPartitions: [PartitionsSchema]?
    Topic: string
    PartitionIds: [int32]
  TransactionLastUpdateTimestampMs: int64
  TransactionStartTimestampMs: int64
  ClientTransactionVersion: int16 1+ tag 2

record RemoteLogSegmentMetadataRecord 0 versions 0 flexible 0+
  RemoteLogSegmentId: RemoteLogSegmentIdEntry
    TopicIdPartition: TopicIdPartitionEntry
      Name: string
      Id: uuid
      Partition: int32
    Id: uuid
  StartOffset: int64
  EndOffset: int64
  BrokerId: int32
  MaxTimestampMs: int64
  EventTimestampMs: int64
  SegmentLeaderEpochs: [SegmentLeaderEpochEntry]
    LeaderEpoch: int32
    Offset: int64
  SegmentSizeInBytes: int32
  CustomMetadata: bytes? = null
  RemoteLogSegmentState: int8
  TxnIndexEmpty: bool tag 0

record RemoteLogSegmentMetadataUpdateRecord 1 versions 0 flexible 0+
  RemoteLogSegmentId: RemoteLogSegmentIdEntry
    TopicIdPartition: TopicIdPartitionEntry
      Name: string
      Id: uuid
      Partition: int32
    Id: uuid
  BrokerId: int32
  EventTimestampMs: int64
  CustomMetadata: bytes? = null
  RemoteLogSegmentState: int8

record RemotePartitionDeleteMetadataRecord 2 versions 0 flexible 0+
  TopicIdPartition: TopicIdPartitionEntry
    Name: string
    Id: uuid
    Partition: int32
  BrokerId: int32
  EventTimestampMs: int64
  RemotePartitionDeleteState: int8

record RemoteLogSegmentMetadataSnapshotRecord 3 versions 0 flexible 0+
  SegmentId: uuid
  StartOffset: int64
  EndOffset: int64
  BrokerId: int32
  MaxTimestampMs: int64
  EventTimestampMs: int64
  SegmentLeaderEpochs: [SegmentLeaderEpochEntry]
    LeaderEpoch: int32
    Offset: int64
  SegmentSizeInBytes: int32
  CustomMetadata: bytes? = null
  RemoteLogSegmentState: int8
  TxnIndexEmpty: bool tag 0
"""
