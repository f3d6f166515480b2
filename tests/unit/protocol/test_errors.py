"""Error codes against what Kafka's own class of them holds, and the exceptions."""

from __future__ import annotations

import zipfile

import pytest

from protocol.errors import ErrorCode, InvalidRecords, MalformedMessage, ProtocolViolation
from tests.support.jars import kafka_jars

#: Kafka's text is a paragraph here; ours is shorter.
SHORTENED = {
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
    ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
}


def test_codes_have_no_gap() -> None:
    assert sorted(ErrorCode) == list(range(-1, 137))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (0, "NONE"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (17, "INVALID_TOPIC_EXCEPTION"),
        (36, "TOPIC_ALREADY_EXISTS"),
        (45, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (56, "KAFKA_STORAGE_ERROR"),
        (87, "INVALID_RECORD"),
        (100, "UNKNOWN_TOPIC_ID"),
        (127, "VOTER_NOT_FOUND"),
        (136, "CONTROLLER_ID_NOT_REGISTERED"),
    ],
)
def test_codes_are_kafkas(code: int, name: str) -> None:
    assert ErrorCode(code).name == name


def test_names_and_texts_are_kafkas() -> None:
    with zipfile.ZipFile(kafka_jars("4.4.0") / "kafka-clients-4.4.0.jar") as jar:
        constants = jar.read("org/apache/kafka/common/protocol/Errors.class")
    for error in ErrorCode:
        assert error.name.encode() in constants
        if error not in SHORTENED and error != ErrorCode.NONE:
            assert error.message.encode() in constants, error.name


def test_some_failures_may_be_tried_again_and_some_not() -> None:
    again = {6, 7, 14, 15, 16, 19, 56, 70, 74, 88, 100}
    assert all(ErrorCode(code).retriable for code in again)
    never = {-1, 0, 1, 10, 17, 22, 25, 27, 35, 42, 47, 87, 90}
    assert not any(ErrorCode(code).retriable for code in never)


def test_malformed_bytes_are_a_violation_of_the_protocol() -> None:
    assert issubclass(MalformedMessage, ProtocolViolation)


def test_refused_records_tell_which() -> None:
    refused = InvalidRecords(ErrorCode.INVALID_RECORD, "no key", ((3, "record 3"),))
    assert (refused.error, refused.message, refused.record_errors) == (87, "no key", ((3, "record 3"),))
    assert str(refused) == "INVALID_RECORD: no key"
