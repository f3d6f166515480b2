"""The image and its differences."""

from __future__ import annotations

from replication.metadata.image import (
    BrokerImage,
    ClusterImage,
    ImageHolder,
    PartitionImage,
    TopicImage,
    changes_between,
)
from tests.unit.replication.cluster import topic_resource


def topic(name, number, partitions=1):
    return TopicImage(
        name, bytes([number]) * 16, tuple(PartitionImage(i, 1, 0, 0, (1,), (1,)) for i in range(partitions))
    )


A, B = topic("a", 1), topic("b", 2, 3)
IMAGE = ClusterImage().with_topics([A, B])


def test_topics_are_found_by_name_id_and_index():
    assert IMAGE.topics["a"] is A
    assert IMAGE.topics_by_id[B.topic_id] is B
    assert IMAGE.partition("b", 2) is B.partitions[2]
    assert IMAGE.partition("b", 3) is None
    assert IMAGE.partition("b", -1) is None
    assert IMAGE.partition("c", 0) is None


def test_images_do_not_change():
    after = IMAGE.with_topics([topic("a", 9)], removed=["b"])
    assert (IMAGE.topics["a"], len(IMAGE.topics)) == (A, 2)
    assert list(after.topics) == ["a"]
    assert list(after.topics_by_id) == [bytes([9]) * 16]


def test_changes_name_what_was_created_deleted_and_changed():
    grown = topic("b", 2, 4)
    new = topic("c", 3)
    changes = changes_between(IMAGE, IMAGE.with_topics([grown, new], removed=["a"]))
    assert (changes.created, changes.deleted, changes.changed) == ([new], [A], [(B, grown)])
    assert changes.with_new_partitions() == [new, grown]
    nothing = changes_between(IMAGE, IMAGE)
    assert not (nothing.created)
    assert not (nothing.deleted)
    assert not (nothing.changed)
    assert not (nothing.configs)


def test_a_topic_made_anew_is_deleted_and_created():
    anew = topic("a", 7)
    changes = changes_between(IMAGE, IMAGE.with_topics([anew], removed=["a"]))
    assert (changes.created, changes.deleted, changes.changed) == ([anew], [A], [])


def test_configs():
    resource = topic_resource("a")
    image = IMAGE.with_configs({resource: {"k": "v"}})
    assert image.overrides(resource) == {"k": "v"}
    assert IMAGE.overrides(resource) == {}
    assert changes_between(IMAGE, image).configs == [resource]
    assert changes_between(image, image.with_configs({topic_resource("b"): {"x": "y"}})).configs == [
        topic_resource("b")
    ]
    assert resource not in image.with_configs({resource: {}}).configs


def test_brokers_are_in_the_order_of_their_ids():
    brokers = {2: BrokerImage(2, 5, {}), 1: BrokerImage(1, 4, {})}
    image = IMAGE.with_brokers(brokers)
    assert list(image.brokers) == [1, 2]


def test_the_holder_tells_subscribers_in_order_after_the_change():
    holder = ImageHolder()
    heard = []
    holder.subscribe(lambda old, new: heard.append(("first", old, new, holder.current)))
    holder.subscribe(lambda old, new: heard.append(("second", old, new, holder.current)))
    old = holder.current
    holder.publish(IMAGE)
    holder.publish(IMAGE)
    assert heard == [("first", old, IMAGE, IMAGE), ("second", old, IMAGE, IMAGE)]
