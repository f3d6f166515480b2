"""The bytes of protocol type "consumer" that members of the classic protocol exchange through the broker:
subscriptions and assignments, versions 0 to 3. A higher version is read as the newest that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from coordinator.group.modern.assignment import Assignment
from coordinator.ports import Topics
from protocol import messages as m
from protocol.errors import MalformedMessage

PROTOCOL_TYPE: Final = "consumer"
MAX_VERSION: Final = 3
_VERSION_BYTES = 2


class BadBytes(Exception):
    """Bytes that are no subscription or assignment."""


class OwnUserData(Exception):
    """An assignment with data of a custom assignor, which the newer protocol has no place for."""


def _version(data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise BadBytes("too short for a version")
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if version < 0:
        raise BadBytes(f"version {version}")
    return min(version, MAX_VERSION)


def _decode(cls: Any, data: bytes) -> Any:
    try:
        read, _ = cls.decode(_version(data), data, _VERSION_BYTES)
    except MalformedMessage as error:
        raise BadBytes(str(error)) from None
    return read


def read_subscription(data: bytes) -> m.ConsumerProtocolSubscription:
    """Raises BadBytes."""
    read: m.ConsumerProtocolSubscription = _decode(m.ConsumerProtocolSubscription, data)
    return read


def read_assignment(data: bytes, topics: Topics) -> Assignment:
    """By topic id; topics that do not exist are left out. Raises BadBytes, OwnUserData."""
    if not data:
        return {}
    read: m.ConsumerProtocolAssignment = _decode(m.ConsumerProtocolAssignment, data)
    if read.user_data:
        raise OwnUserData
    return by_id(read.assigned_partitions, topics)


def by_id(partitions: Iterable[Any], topics: Topics) -> Assignment:
    """Structs of topic name and partitions, by topic id."""
    found: Assignment = {}
    for each in partitions:
        topic = topics.topic(each.topic)
        if topic is not None and each.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()).union(each.partitions)
    return found


def write_assignment(assigned: Mapping[bytes, Iterable[int]], topics: Topics, subscription: bytes) -> bytes:
    """The bytes of an assignment, in the version of the member's subscription."""
    try:
        version = _version(subscription)
    except BadBytes:
        version = 0
    named = ((topics.name_of(topic_id), partitions) for topic_id, partitions in assigned.items())
    message = m.ConsumerProtocolAssignment(
        assigned_partitions=[
            m.ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=sorted(partitions))
            for name, partitions in sorted((name, list(each)) for name, each in named if name is not None)
        ],
        user_data=None,
    )
    return version.to_bytes(_VERSION_BYTES, "big") + message.encode(version)
