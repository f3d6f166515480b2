"""How Kafka's tools name failures: some print the Java exception that stands for an error code.

`named` is an exception's class with its message, `nested` the same once more inside the wrapper that a
future's result raises.
"""

from __future__ import annotations

from ottla.client import ClientError
from protocol.errors import ErrorCode

PACKAGE = "org.apache.kafka.common.errors."
FUTURE = "java.util.concurrent.ExecutionException: "
RUNTIME = "java.lang.RuntimeException"

# Where the class is not called as the code is.
IRREGULAR = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.MESSAGE_TOO_LARGE: "RecordTooLargeException",
    ErrorCode.STALE_CONTROLLER_EPOCH: "ControllerMovedException",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.NETWORK_EXCEPTION: "NetworkException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.RECORD_LIST_TOO_LARGE: "RecordBatchTooLargeException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.TOPIC_ALREADY_EXISTS: "TopicExistsException",
    ErrorCode.INVALID_CONFIG: "InvalidConfigurationException",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceException",
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "DuplicateSequenceException",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidPidMappingException",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "InvalidTxnTimeoutException",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "DelegationTokenDisabledException",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "UnsupportedByAuthenticationException",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "DelegationTokenAuthorizationException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE: "PrincipalDeserializationException",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "FetchSessionTopicIdException",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
}
OUTSIDE_OF_PACKAGE = {ErrorCode.INVALID_RECORD: "org.apache.kafka.common.InvalidRecordException"}


def class_name(error: ErrorCode) -> str:
    """The Java exception class of an error code, with its package."""
    if error in OUTSIDE_OF_PACKAGE:
        return OUTSIDE_OF_PACKAGE[error]
    regular = "".join(word.title() for word in error.name.split("_")) + "Exception"
    return PACKAGE + IRREGULAR.get(error, regular)


def named(error: ClientError) -> str:
    """The class and message of an exception; the message alone of a failure without an error code."""
    if error.error is None:
        return str(error)
    return f"{class_name(error.error)}: {error}"


def nested(error: ClientError) -> str:
    """The same as a future tells it, rethrown."""
    return FUTURE + named(error)


def of_code(error: ErrorCode) -> str:
    """The class and message of a code that came without a text."""
    return f"{class_name(error)}: {error.message}"
