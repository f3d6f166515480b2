"""Assignments from and to structs."""

from coordinator.group.modern.assignment import from_wire, size, to_wire
from protocol import messages as m

Part = m.ConsumerGroupHeartbeatRequest.TopicPartitions
A, B = b"a" * 16, b"b" * 16


def test_there_and_back_sorted_and_without_empty_topics() -> None:
    parts = [
        Part(topic_id=B, partitions=[2, 1]), Part(topic_id=A, partitions=[]),
        Part(topic_id=B, partitions=[1, 3]),
    ]  # fmt: skip
    assignment = from_wire(parts)
    assert assignment == {B: frozenset({1, 2, 3})}
    assert size(assignment) == 3
    assert to_wire({B: {2, 1}, A: [0]}, Part) == [
        Part(topic_id=A, partitions=[0]), Part(topic_id=B, partitions=[1, 2]),
    ]  # fmt: skip
