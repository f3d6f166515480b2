"""How simulated members share partitions: what a leader computes, and the blobs that carry it.

Round-robin over the members that subscribe to a topic; the cooperative way leaves out what another member
still owns, so that it moves one rebalance later.
"""

from __future__ import annotations

from coordinator.ports import TopicFacts
from protocol import messages as m

TOPICS = {"a": 4, "b": 2, "c": 3}
Place = tuple[str, int]
EAGER, COOPERATIVE = "range", "cooperative-sticky"


def subscription(topics: tuple[str, ...], owned: frozenset[Place], generation: int) -> bytes:
    """Metadata of a JoinGroup."""
    by_topic = m.ConsumerProtocolSubscription.TopicPartition
    places = [by_topic(topic=name, partitions=_of(owned, name)) for name in TOPICS if _of(owned, name)]
    body = m.ConsumerProtocolSubscription(
        topics=list(topics), owned_partitions=places, generation_id=generation
    )
    return b"\0\2" + body.encode(2)


def assignment(places: frozenset[Place]) -> bytes:
    """A member's part of a SyncGroup."""
    by_topic = m.ConsumerProtocolAssignment.TopicPartition
    named = [by_topic(topic=name, partitions=_of(places, name)) for name in TOPICS if _of(places, name)]
    return b"\0\1" + m.ConsumerProtocolAssignment(assigned_partitions=named).encode(1)


def assigned_places(blob: bytes) -> frozenset[Place]:
    """The places of an assignment; none where the leader gave nothing."""
    if not blob:
        return frozenset()
    read, _ = m.ConsumerProtocolAssignment.decode(1, blob, 2)
    return frozenset((each.topic, number) for each in read.assigned_partitions for number in each.partitions)


def assign(metadata: dict[str, bytes], protocol: str) -> tuple[dict[str, bytes], bool]:
    """The leader's assignment, by member id, and whether it leaves something out."""
    read = {member: m.ConsumerProtocolSubscription.decode(2, blob, 2)[0] for member, blob in metadata.items()}
    target: dict[Place, str] = {}
    for topic, partitions in TOPICS.items():
        members = sorted(member for member, said in read.items() if topic in said.topics)
        for number in range(partitions if members else 0):
            target[topic, number] = members[number % len(members)]
    wanted = len(target)
    if protocol == COOPERATIVE:
        for member, said in read.items():
            for each in said.owned_partitions:
                for number in each.partitions:
                    if target.get((each.topic, number)) != member:
                        target.pop((each.topic, number), None)
    shares = {
        member: frozenset(place for place, owner in target.items() if owner == member) for member in read
    }
    return {member: assignment(places) for member, places in shares.items()}, len(target) < wanted


def _of(places: frozenset[Place], topic: str) -> list[int]:
    return sorted(number for name, number in places if name == topic)


def topic_id(topic: str) -> bytes:
    """Ids of topics follow from their names here."""
    return topic.encode() * 16


def place_of(of_topic: bytes, partition: int) -> Place:
    """A partition by its topic's id."""
    return of_topic[:1].decode(), partition


def by_id(places: frozenset[Place]) -> dict[bytes, list[int]]:
    """Partitions by their topics' ids."""
    return {topic_id(name): _of(places, name) for name in TOPICS if _of(places, name)}


class FixedTopics:
    """The topics of the cluster; see `ports.Topics`."""

    def version(self) -> object:
        return TOPICS

    def names_version(self) -> int:
        return 0

    def topic(self, name: str) -> TopicFacts | None:
        return TopicFacts(name, topic_id(name), TOPICS[name]) if name in TOPICS else None

    def name_of(self, of_topic: bytes) -> str | None:
        name = of_topic[:1].decode()
        return name if name in TOPICS else None

    def names(self) -> list[str]:
        return list(TOPICS)
