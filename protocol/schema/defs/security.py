"""Authentication, ACLs, delegation tokens and SCRAM credentials.

The notation is explained in `protocol.schema.notation`.
"""

DEFINITIONS = """\
request SaslHandshakeRequest 17 versions 0-1
  Mechanism: string

response SaslHandshakeResponse 17 versions 0-1
  ErrorCode: int16
  Mechanisms: [string]

request SaslAuthenticateRequest 36 versions 0-2 flexible 2+
  AuthBytes: bytes

response SaslAuthenticateResponse 36 versions 0-2 flexible 2+
  ErrorCode: int16
  ErrorMessage: string?
  AuthBytes: bytes
  SessionLifetimeMs: int64 1+ ~

request DescribeAclsRequest 29 versions 0-3 flexible 2+
  ResourceTypeFilter: int8
  ResourceNameFilter: string?
  PatternTypeFilter: int8 1+ = 3
  PrincipalFilter: string?
  HostFilter: string?
  Operation: int8
  PermissionType: int8

response DescribeAclsResponse 29 versions 0-3 flexible 2+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string?
  Resources: [DescribeAclsResource]
    ResourceType: int8
    ResourceName: string
    PatternType: int8 1+ = 3
    Acls: [AclDescription]
      Principal: string
      Host: string
      Operation: int8
      PermissionType: int8

request CreateAclsRequest 30 versions 0-3 flexible 2+
  Creations: [AclCreation]
    ResourceType: int8
    ResourceName: string
    ResourcePatternType: int8 1+ = 3
    Principal: string
    Host: string
    Operation: int8
    PermissionType: int8

response CreateAclsResponse 30 versions 0-3 flexible 2+
  ThrottleTimeMs: int32
  Results: [AclCreationResult]
    ErrorCode: int16
    ErrorMessage: string?

request DeleteAclsRequest 31 versions 0-3 flexible 2+
  Filters: [DeleteAclsFilter]
    ResourceTypeFilter: int8
    ResourceNameFilter: string?
    PatternTypeFilter: int8 1+ = 3
    PrincipalFilter: string?
    HostFilter: string?
    Operation: int8
    PermissionType: int8

response DeleteAclsResponse 31 versions 0-3 flexible 2+
  ThrottleTimeMs: int32
  FilterResults: [DeleteAclsFilterResult]
    ErrorCode: int16
    ErrorMessage: string?
    MatchingAcls: [DeleteAclsMatchingAcl]
      ErrorCode: int16
      ErrorMessage: string?
      ResourceType: int8
      ResourceName: string
      PatternType: int8 1+ = 3
      Principal: string
      Host: string
      Operation: int8
      PermissionType: int8

request CreateDelegationTokenRequest 38 versions 0-3 flexible 2+
  OwnerPrincipalType: string? 3+
  OwnerPrincipalName: string? 3+
  Renewers: [CreatableRenewers]
    PrincipalType: string
    PrincipalName: string
  MaxLifetimeMs: int64

response CreateDelegationTokenResponse 38 versions 0-3 flexible 2+
  ErrorCode: int16
  PrincipalType: string
  PrincipalName: string
  TokenRequesterPrincipalType: string 3+
  TokenRequesterPrincipalName: string 3+
  IssueTimestampMs: int64
  ExpiryTimestampMs: int64
  MaxTimestampMs: int64
  TokenId: string
  Hmac: bytes
  ThrottleTimeMs: int32

request RenewDelegationTokenRequest 39 versions 0-2 flexible 2+
  Hmac: bytes
  RenewPeriodMs: int64

response RenewDelegationTokenResponse 39 versions 0-2 flexible 2+
  ErrorCode: int16
  ExpiryTimestampMs: int64
  ThrottleTimeMs: int32

request ExpireDelegationTokenRequest 40 versions 0-2 flexible 2+
  Hmac: bytes
  ExpiryTimePeriodMs: int64

response ExpireDelegationTokenResponse 40 versions 0-2 flexible 2+
  ErrorCode: int16
  ExpiryTimestampMs: int64
  ThrottleTimeMs: int32

request DescribeDelegationTokenRequest 41 versions 0-3 flexible 2+
  Owners: [DescribeDelegationTokenOwner]?
    PrincipalType: string
    PrincipalName: string

response DescribeDelegationTokenResponse 41 versions 0-3 flexible 2+
  ErrorCode: int16
  Tokens: [DescribedDelegationToken]
    PrincipalType: string
    PrincipalName: string
    TokenRequesterPrincipalType: string 3+
    TokenRequesterPrincipalName: string 3+
    IssueTimestamp: int64
    ExpiryTimestamp: int64
    MaxTimestamp: int64
    TokenId: string
    Hmac: bytes
    Renewers: [DescribedDelegationTokenRenewer]
      PrincipalType: string
      PrincipalName: string
  ThrottleTimeMs: int32

request DescribeUserScramCredentialsRequest 50 versions 0 flexible 0+
  Users: [UserName]?
    Name: string

response DescribeUserScramCredentialsResponse 50 versions 0 flexible 0+
  ThrottleTimeMs: int32
  ErrorCode: int16
  ErrorMessage: string?
  Results: [DescribeUserScramCredentialsResult]
    User: string
    ErrorCode: int16
    ErrorMessage: string?
    CredentialInfos: [CredentialInfo]
      Mechanism: int8
      Iterations: int32

request AlterUserScramCredentialsRequest 51 versions 0 flexible 0+
  Deletions: [ScramCredentialDeletion]
    Name: string
    Mechanism: int8
  Upsertions: [ScramCredentialUpsertion]
    Name: string
    Mechanism: int8
    Iterations: int32
    Salt: bytes
    SaltedPassword: bytes

response AlterUserScramCredentialsResponse 51 versions 0 flexible 0+
  ThrottleTimeMs: int32
  Results: [AlterUserScramCredentialsResult]
    User: string
    ErrorCode: int16
    ErrorMessage: string?
"""
