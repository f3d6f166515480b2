"""Configurations, quotas and client telemetry.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request DescribeConfigsRequest 32 versions 0-4 flexible 4+
  Resources: [DescribeConfigsResource]
    ResourceType: int8
    ResourceName: string
    ConfigurationKeys: [string]?
  IncludeSynonyms: bool 1+
  IncludeDocumentation: bool 3+

response DescribeConfigsResponse 32 versions 0-4 flexible 4+
  ThrottleTimeMs: int32
  Results: [DescribeConfigsResult]
    ErrorCode: int16
    ErrorMessage: string?
    ResourceType: int8
    ResourceName: string
    Configs: [DescribeConfigsResourceResult]
      Name: string
      Value: string?
      ReadOnly: bool
      IsDefault: bool 0
      ConfigSource: int8 1+ = -1 ~
      IsSensitive: bool
      Synonyms: [DescribeConfigsSynonym] 1+ ~
        Name: string
        Value: string?
        Source: int8
      ConfigType: int8 3+ ~
      Documentation: string? 3+ ~

request AlterConfigsRequest 33 versions 0-2 flexible 2+
  Resources: [AlterConfigsResource]
    ResourceType: int8
    ResourceName: string
    Configs: [AlterableConfig]
      Name: string
      Value: string?
  ValidateOnly: bool

response AlterConfigsResponse 33 versions 0-2 flexible 2+
  ThrottleTimeMs: int32
  Responses: [AlterConfigsResourceResponse]
    ErrorCode: int16
    ErrorMessage: string?
    ResourceType: int8
    ResourceName: string

request IncrementalAlterConfigsRequest 44 versions 0-1 flexible 1+
  Resources: [AlterConfigsResource]
    ResourceType: int8
    ResourceName: string
    Configs: [AlterableConfig]
      Name: string
      ConfigOperation: int8
      Value: string?
  ValidateOnly: bool

response IncrementalAlterConfigsResponse 44 versions 0-1 flexible 1+
  ThrottleTimeMs: int32
  Responses: [AlterConfigsResourceResponse]
    ErrorCode: int16
    ErrorMessage: string?
    ResourceType: int8
    ResourceName: string

request ListConfigResourcesRequest 74 versions 0-1 flexible 0+
  ResourceTypes: [int8] 1+

response ListConfigResourcesResponse 74 versions 0-1 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ConfigResources: [ConfigResource]
    ResourceName: string
    ResourceType: int8 1+ = 16 ~

request DescribeClientQuotasRequest 48 versions 0-1 flexible 1+
  Components: [ComponentData]
    EntityType: string
    MatchType: int8
    Match: string?
  Strict: bool

response DescribeClientQuotasResponse 48 versions 0-1 flexible 1+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string?
  Entries: [EntryData]?
    Entity: [EntityData]
      EntityType: string
      EntityName: string?
    Values: [ValueData]
      Key: string
      Value: float64

request AlterClientQuotasRequest 49 versions 0-1 flexible 1+
  Entries: [EntryData]
    Entity: [EntityData]
      EntityType: string
      EntityName: string?
    Ops: [OpData]
      Key: string
      Value: float64
      Remove: bool
  ValidateOnly: bool

response AlterClientQuotasResponse 49 versions 0-1 flexible 1+
  ThrottleTimeMs: int32
  Entries: [EntryData]
    ErrorCode: int16
    ErrorMessage: string?
    Entity: [EntityData]
      EntityType: string
      EntityName: string?

request GetTelemetrySubscriptionsRequest 71 versions 0 flexible 0+
  ClientInstanceId: uuid

response GetTelemetrySubscriptionsResponse 71 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ClientInstanceId: uuid
  SubscriptionId: int32
  AcceptedCompressionTypes: [int8]
  PushIntervalMs: int32
  TelemetryMaxBytes: int32
  DeltaTemporality: bool
  RequestedMetrics: [string]

request PushTelemetryRequest 72 versions 0 flexible 0+
  ClientInstanceId: uuid
  SubscriptionId: int32
  Terminating: bool
  CompressionType: int8
  Metrics: bytes

response PushTelemetryResponse 72 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
"""
