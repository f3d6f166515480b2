"""The cluster's topics as the group coordinator sees them."""

from __future__ import annotations

from types import MappingProxyType

from broker.adapters.cluster_topics import ClusterTopics
from replication.metadata.image import (
    BrokerImage,
    ClusterImage,
    ImageHolder,
    PartitionImage,
    TopicImage,
)


def topic(name: str, *replicas: tuple[int, ...], leader: int = 1) -> TopicImage:
    partitions = tuple(
        PartitionImage(at, leader, 0, 0, each, each) for at, each in enumerate(replicas or ((1,),))
    )
    return TopicImage(name, name.encode().ljust(16), partitions)


def test_topics_by_name_and_id() -> None:
    holder = ImageHolder(ClusterImage().with_topics([topic("t", (1,), (1,))]))
    topics = ClusterTopics(holder)
    facts = topics.topic("t")
    assert facts is not None
    assert (facts.name, facts.partition_count, facts.racks) == ("t", 2, ())
    assert topics.name_of(facts.topic_id) == "t"
    assert (topics.topic("x"), topics.name_of(b"x" * 16), list(topics.names())) == (None, None, ["t"])


def test_versions_tell_changes_and_additions_apart() -> None:
    holder = ImageHolder(ClusterImage().with_topics([topic("t")]))
    topics = ClusterTopics(holder)
    version, names = topics.version(), topics.names_version()
    assert topics.version() == version
    holder.publish(holder.current.with_topics([topic("t", leader=2)]))
    assert topics.version() != version
    assert topics.names_version() == names
    holder.publish(holder.current.with_topics([topic("u")], ["t"]))
    assert topics.names_version() == names + 1
    holder.publish(holder.current.with_topics([], ["u"]))
    assert topics.names_version() == names + 1


def test_racks_are_those_of_each_partitions_replicas() -> None:
    brokers = {
        number: BrokerImage(number, 1, MappingProxyType({}), rack)
        for number, rack in ((1, "b"), (2, "a"), (3, None))
    }
    image = ClusterImage().with_brokers(brokers).with_topics([topic("t", (1, 2), (3,), (2, 3))])
    facts = ClusterTopics(ImageHolder(image)).topic("t")
    assert facts is not None
    assert facts.racks == (("a", "b"), (), ("a",))
