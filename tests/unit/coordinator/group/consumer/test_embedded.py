"""The bytes that members of the classic protocol exchange."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.consumer.embedded import (
    BadBytes,
    OwnUserData,
    read_assignment,
    read_subscription,
    write_assignment,
)
from protocol import messages as m
from tests.unit.coordinator.group.consumer.play import FakeTopics

TOPICS = FakeTopics({"t": 3, "u": 1})
T, U = TOPICS.facts["t"].topic_id, TOPICS.facts["u"].topic_id


@given(st.dictionaries(st.sampled_from([T, U]), st.sets(st.integers(0, 5), min_size=1)), st.integers(0, 9))
def test_assignments_there_and_back(assigned: dict[bytes, set[int]], version: int) -> None:
    written = write_assignment(assigned, TOPICS, bytes([0, version]))
    assert written[:2] == bytes([0, min(version, 3)])
    wanted = {topic: frozenset(numbers) for topic, numbers in assigned.items()}
    assert read_assignment(written, TOPICS) == wanted


def test_topics_that_do_not_exist_are_left_out() -> None:
    part = m.ConsumerProtocolAssignment.TopicPartition
    message = m.ConsumerProtocolAssignment(
        assigned_partitions=[part(topic="gone", partitions=[0]), part(topic="t", partitions=[1])]
    )
    assert read_assignment(b"\0\1" + message.encode(1), TOPICS) == {T: frozenset({1})}
    assert read_assignment(b"", TOPICS) == {}
    assert read_assignment(write_assignment({b"x" * 16: [1]}, TOPICS, b""), TOPICS) == {}


def test_data_of_an_assignor_of_its_own() -> None:
    message = m.ConsumerProtocolAssignment(user_data=b"mine")
    with pytest.raises(OwnUserData):
        read_assignment(b"\0\0" + message.encode(0), TOPICS)


def test_subscriptions_of_newer_versions_are_read_as_the_newest_known() -> None:
    message = m.ConsumerProtocolSubscription(topics=["t"], rack_id="r", generation_id=4)
    assert read_subscription(b"\0\x09" + message.encode(3) + b"more").rack_id == "r"


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0", b"\0\1\0\0\0\5"])
def test_bytes_that_are_something_else(data: bytes) -> None:
    with pytest.raises(BadBytes):
        read_subscription(data)
