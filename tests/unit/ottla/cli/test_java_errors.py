"""Names of Java's exceptions for error codes."""

from __future__ import annotations

import pytest

from ottla.cli.java_errors import class_name, named, nested, of_code
from ottla.client import ClientError
from protocol.errors import ErrorCode

PACKAGE = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, PACKAGE + "GroupIdNotFoundException"),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, PACKAGE + "UnknownTopicOrPartitionException"),
        (ErrorCode.NON_EMPTY_GROUP, PACKAGE + "GroupNotEmptyException"),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, PACKAGE + "OffsetMetadataTooLarge"),
        (ErrorCode.REQUEST_TIMED_OUT, PACKAGE + "TimeoutException"),
        (ErrorCode.INVALID_RECORD, "org.apache.kafka.common.InvalidRecordException"),
    ],
)
def test_a_code_has_the_name_of_its_class(error, expected) -> None:
    assert class_name(error) == expected


def test_messages_carry_the_class_once_or_inside_a_futures_wrapper() -> None:
    error = ClientError("Group g not found.", ErrorCode.GROUP_ID_NOT_FOUND)
    assert named(error) == PACKAGE + "GroupIdNotFoundException: Group g not found."
    assert nested(error) == "java.util.concurrent.ExecutionException: " + named(error)
    assert named(ClientError("no broker answers")) == "no broker answers"
    assert of_code(ErrorCode.GROUP_ID_NOT_FOUND) == (
        PACKAGE + "GroupIdNotFoundException: The group id does not exist."
    )
