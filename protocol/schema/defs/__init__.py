"""The definitions of all messages in our notation, grouped by theme.

`MESSAGES` tells which module defines a message, so that a process reads only the definitions it uses. The
versions are the union of those that Apache Kafka 3.9 and 4.4 know, without the unstable ones; where the two
describe an old version differently, 4.4 decides.
"""

from typing import Final

_GROUPS: Final[dict[str, str]] = {
    "produce_fetch": """
        ProduceRequest ProduceResponse FetchRequest FetchResponse ListOffsetsRequest ListOffsetsResponse
        OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse DeleteRecordsRequest DeleteRecordsResponse
    """,
    "metadata": """
        MetadataRequest MetadataResponse ApiVersionsRequest ApiVersionsResponse DescribeClusterRequest
        DescribeClusterResponse DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse
        UpdateFeaturesRequest UpdateFeaturesResponse
    """,
    "inter_broker": """
        LeaderAndIsrRequest LeaderAndIsrResponse StopReplicaRequest StopReplicaResponse
        UpdateMetadataRequest UpdateMetadataResponse ControlledShutdownRequest ControlledShutdownResponse
        AlterPartitionRequest AlterPartitionResponse EnvelopeRequest EnvelopeResponse
        AllocateProducerIdsRequest AllocateProducerIdsResponse DefaultPrincipalData
    """,
    "offsets": """
        OffsetCommitRequest OffsetCommitResponse OffsetFetchRequest OffsetFetchResponse OffsetDeleteRequest
        OffsetDeleteResponse FindCoordinatorRequest FindCoordinatorResponse
    """,
    "groups": """
        JoinGroupRequest JoinGroupResponse SyncGroupRequest SyncGroupResponse HeartbeatRequest
        HeartbeatResponse LeaveGroupRequest LeaveGroupResponse DescribeGroupsRequest DescribeGroupsResponse
        ListGroupsRequest ListGroupsResponse DeleteGroupsRequest DeleteGroupsResponse
        ConsumerProtocolSubscription ConsumerProtocolAssignment
    """,
    "consumer_groups": """
        ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse ConsumerGroupDescribeRequest
        ConsumerGroupDescribeResponse
    """,
    "share_groups": """
        ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse ShareGroupDescribeRequest
        ShareGroupDescribeResponse ShareFetchRequest ShareFetchResponse ShareAcknowledgeRequest
        ShareAcknowledgeResponse DescribeShareGroupOffsetsRequest DescribeShareGroupOffsetsResponse
        AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse DeleteShareGroupOffsetsRequest
        DeleteShareGroupOffsetsResponse
    """,
    "share_state": """
        InitializeShareGroupStateRequest InitializeShareGroupStateResponse ReadShareGroupStateRequest
        ReadShareGroupStateResponse WriteShareGroupStateRequest WriteShareGroupStateResponse
        DeleteShareGroupStateRequest DeleteShareGroupStateResponse ReadShareGroupStateSummaryRequest
        ReadShareGroupStateSummaryResponse
    """,
    "streams_groups": """
        StreamsGroupHeartbeatRequest StreamsGroupHeartbeatResponse StreamsGroupDescribeRequest
        StreamsGroupDescribeResponse StreamsGroupTopologyDescriptionUpdateRequest
        StreamsGroupTopologyDescriptionUpdateResponse
    """,
    "transactions": """
        InitProducerIdRequest InitProducerIdResponse AddPartitionsToTxnRequest AddPartitionsToTxnResponse
        AddOffsetsToTxnRequest AddOffsetsToTxnResponse EndTxnRequest EndTxnResponse WriteTxnMarkersRequest
        WriteTxnMarkersResponse TxnOffsetCommitRequest TxnOffsetCommitResponse DescribeProducersRequest
        DescribeProducersResponse DescribeTransactionsRequest DescribeTransactionsResponse
        ListTransactionsRequest ListTransactionsResponse
    """,
    "topics": """
        CreateTopicsRequest CreateTopicsResponse DeleteTopicsRequest DeleteTopicsResponse
        CreatePartitionsRequest CreatePartitionsResponse ElectLeadersRequest ElectLeadersResponse
        AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse
        ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse AlterReplicaLogDirsRequest
        AlterReplicaLogDirsResponse DescribeLogDirsRequest DescribeLogDirsResponse
    """,
    "configs": """
        DescribeConfigsRequest DescribeConfigsResponse AlterConfigsRequest AlterConfigsResponse
        IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse ListConfigResourcesRequest
        ListConfigResourcesResponse DescribeClientQuotasRequest DescribeClientQuotasResponse
        AlterClientQuotasRequest AlterClientQuotasResponse GetTelemetrySubscriptionsRequest
        GetTelemetrySubscriptionsResponse PushTelemetryRequest PushTelemetryResponse
    """,
    "security": """
        SaslHandshakeRequest SaslHandshakeResponse SaslAuthenticateRequest SaslAuthenticateResponse
        DescribeAclsRequest DescribeAclsResponse CreateAclsRequest CreateAclsResponse DeleteAclsRequest
        DeleteAclsResponse CreateDelegationTokenRequest CreateDelegationTokenResponse
        RenewDelegationTokenRequest RenewDelegationTokenResponse ExpireDelegationTokenRequest
        ExpireDelegationTokenResponse DescribeDelegationTokenRequest DescribeDelegationTokenResponse
        DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse
        AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse
    """,
    "group_records": """
        LegacyOffsetCommitKey LegacyOffsetCommitValue OffsetCommitKey OffsetCommitValue GroupMetadataKey
        GroupMetadataValue ConsumerGroupMetadataKey ConsumerGroupMetadataValue
        ConsumerGroupPartitionMetadataKey ConsumerGroupPartitionMetadataValue ConsumerGroupMemberMetadataKey
        ConsumerGroupMemberMetadataValue ConsumerGroupTargetAssignmentMetadataKey
        ConsumerGroupTargetAssignmentMetadataValue ConsumerGroupTargetAssignmentMemberKey
        ConsumerGroupTargetAssignmentMemberValue ConsumerGroupCurrentMemberAssignmentKey
        ConsumerGroupCurrentMemberAssignmentValue ConsumerGroupRegularExpressionKey
        ConsumerGroupRegularExpressionValue
    """,
    "share_records": """
        ShareGroupMetadataKey ShareGroupMetadataValue ShareGroupMemberMetadataKey
        ShareGroupMemberMetadataValue ShareGroupTargetAssignmentMetadataKey
        ShareGroupTargetAssignmentMetadataValue ShareGroupTargetAssignmentMemberKey
        ShareGroupTargetAssignmentMemberValue ShareGroupCurrentMemberAssignmentKey
        ShareGroupCurrentMemberAssignmentValue ShareGroupStatePartitionMetadataKey
        ShareGroupStatePartitionMetadataValue ShareSnapshotKey ShareSnapshotValue ShareUpdateKey
        ShareUpdateValue
    """,
    "streams_records": """
        StreamsGroupMetadataKey StreamsGroupMetadataValue StreamsGroupMemberMetadataKey
        StreamsGroupMemberMetadataValue StreamsGroupTargetAssignmentMetadataKey
        StreamsGroupTargetAssignmentMetadataValue StreamsGroupTargetAssignmentMemberKey
        StreamsGroupTargetAssignmentMemberValue StreamsGroupCurrentMemberAssignmentKey
        StreamsGroupCurrentMemberAssignmentValue StreamsGroupTopologyKey StreamsGroupTopologyValue
    """,
    "transaction_records": """
        TransactionLogKey TransactionLogValue RemoteLogSegmentMetadataRecord
        RemoteLogSegmentMetadataUpdateRecord RemotePartitionDeleteMetadataRecord
        RemoteLogSegmentMetadataSnapshotRecord
    """,
}

#: message name to the name of the module in this package that defines it, in the order of the definitions
MESSAGES: Final[dict[str, str]] = {name: group for group, names in _GROUPS.items() for name in names.split()}
