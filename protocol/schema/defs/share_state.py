"""Share groups (KIP-932): the state of their partitions, between brokers.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request InitializeShareGroupStateRequest 83 versions 0 flexible 0+
  GroupId: string
  Topics: [InitializeStateData]
    TopicId: uuid
    Partitions: [PartitionData]
      Partition: int32
      StateEpoch: int32
      StartOffset: int64

response InitializeShareGroupStateResponse 83 versions 0 flexible 0+
  Results: [InitializeStateResult]
    TopicId: uuid
    Partitions: [PartitionResult]
      Partition: int32
      ErrorCode: int16
      ErrorMessage: string? = null

request ReadShareGroupStateRequest 84 versions 0 flexible 0+
  GroupId: string
  Topics: [ReadStateData]
    TopicId: uuid
    Partitions: [PartitionData]
      Partition: int32
      LeaderEpoch: int32

response ReadShareGroupStateResponse 84 versions 0 flexible 0+
  Results: [ReadStateResult]
    TopicId: uuid
    Partitions: [PartitionResult]
      Partition: int32
      ErrorCode: int16
      ErrorMessage: string? = null
      StateEpoch: int32
      StartOffset: int64
      StateBatches: [StateBatch]
        FirstOffset: int64
        LastOffset: int64
        DeliveryState: int8
        DeliveryCount: int16

request WriteShareGroupStateRequest 85 versions 0-1 flexible 0+
  GroupId: string
  Topics: [WriteStateData]
    TopicId: uuid
    Partitions: [PartitionData]
      Partition: int32
      StateEpoch: int32
      LeaderEpoch: int32
      StartOffset: int64
      DeliveryCompleteCount: int32 1+ = -1 ~
      StateBatches: [StateBatch]
        FirstOffset: int64
        LastOffset: int64
        DeliveryState: int8
        DeliveryCount: int16

response WriteShareGroupStateResponse 85 versions 0-1 flexible 0+
  Results: [WriteStateResult]
    TopicId: uuid
    Partitions: [PartitionResult]
      Partition: int32
      ErrorCode: int16
      ErrorMessage: string? = null

request DeleteShareGroupStateRequest 86 versions 0 flexible 0+
  GroupId: string
  Topics: [DeleteStateData]
    TopicId: uuid
    Partitions: [PartitionData]
      Partition: int32

response DeleteShareGroupStateResponse 86 versions 0 flexible 0+
  Results: [DeleteStateResult]
    TopicId: uuid
    Partitions: [PartitionResult]
      Partition: int32
      ErrorCode: int16
      ErrorMessage: string? = null

request ReadShareGroupStateSummaryRequest 87 versions 0-1 flexible 0+
  GroupId: string
  Topics: [ReadStateSummaryData]
    TopicId: uuid
    Partitions: [PartitionData]
      Partition: int32
      LeaderEpoch: int32

response ReadShareGroupStateSummaryResponse 87 versions 0-1 flexible 0+
  Results: [ReadStateSummaryResult]
    TopicId: uuid
    Partitions: [PartitionResult]
      Partition: int32
      ErrorCode: int16
      ErrorMessage: string? = null
      StateEpoch: int32
      LeaderEpoch: int32
      StartOffset: int64
      DeliveryCompleteCount: int32 1+ = -1 ~
"""
