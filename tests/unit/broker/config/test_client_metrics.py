"""Keys of client metrics subscriptions; the codes are those of a running Kafka (tests/conformance)."""

from __future__ import annotations

import pytest

from broker.config.client_metrics import PATTERN_LENGTH_MAX, validate
from protocol.errors import ErrorCode
from replication.metadata.configs import ConfigRefused


def refusal(**values: str) -> ErrorCode:
    with pytest.raises(ConfigRefused) as caught:
        validate({key.replace("_", "."): value for key, value in values.items()})
    return caught.value.error


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"interval.ms": "100", "metrics": "", "match": ""},
        {"interval.ms": " 3600000 ", "metrics": "*"},
        {"metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.fetch"},
        {"match": "client_id=a.*, client_software_name = b"},
        {"match": "client_source_port=^12,client_source_address=10[.].*,client_software_version=1|2"},
        {"match": "client_instance_id=x"},
    ],
)
def test_what_a_subscription_may_say(values: dict[str, str]) -> None:
    validate(values)


@pytest.mark.parametrize("interval", ["99", "0", "-1", "3600001"])
def test_an_interval_out_of_bounds_is_42(interval: str) -> None:
    assert refusal(interval_ms=interval) == ErrorCode.INVALID_REQUEST


def test_what_is_no_number_is_40_and_an_unknown_key_42() -> None:
    assert refusal(interval_ms="x") == refusal(interval_ms="") == ErrorCode.INVALID_CONFIG
    assert refusal(no_such="x") == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "match",
    [
        "client_id",
        "foo=bar",
        "client_id=[x",
        "client_id=a=b",
        "client_id=a,foo=b",
        "=x",
        "client_id=" + "(" * 900,
        "client_id=" + "x" * (PATTERN_LENGTH_MAX + 1),
        "client_id=a{99999999999999999999}",
    ],
)
def test_a_match_that_cannot_be_read_is_40(match: str) -> None:
    assert refusal(match=match) == ErrorCode.INVALID_CONFIG
