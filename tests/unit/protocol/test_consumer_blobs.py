"""Subscriptions and assignments of classic consumers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import messages as m
from protocol.consumer_blobs import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from protocol.errors import MalformedMessage

SUBSCRIPTION = m.ConsumerProtocolSubscription(topics=["a", "bc"], user_data=b"u")
SUBSCRIPTION_V0 = b"\0\0\0\0\0\x02\0\x01a\0\x02bc\0\0\0\x01u"


def test_a_subscription() -> None:
    assert encode_subscription(SUBSCRIPTION, 0) == SUBSCRIPTION_V0
    assert decode_subscription(SUBSCRIPTION_V0) == SUBSCRIPTION


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_at_every_version(version: int) -> None:
    blob = encode_subscription(SUBSCRIPTION, version)
    assert blob[:2] == version.to_bytes(2, "big")
    assert decode_subscription(memoryview(blob)) == SUBSCRIPTION


def test_an_assignment() -> None:
    part = m.ConsumerProtocolAssignment.TopicPartition(topic="a", partitions=[0, 1])
    assignment = m.ConsumerProtocolAssignment(assigned_partitions=[part])
    blob = encode_assignment(assignment, 1)
    assert blob == b"\0\x01\0\0\0\x01\0\x01a\0\0\0\x02\0\0\0\0\0\0\0\x01\xff\xff\xff\xff"
    assert decode_assignment(blob) == assignment


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    blob = b"\0\x63" + encode_subscription(SUBSCRIPTION, 3)[2:] + b"newer fields"
    assert decode_subscription(blob) == SUBSCRIPTION


@pytest.mark.parametrize(
    "blob", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x05", b"\0\0\xff\xff\xff\xff"]
)
def test_bytes_that_are_no_subscription_are_malformed(blob: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_subscription(blob)


@given(st.binary(max_size=30))
def test_any_bytes_decode_or_are_malformed(blob: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(blob)
        except MalformedMessage:
            continue
