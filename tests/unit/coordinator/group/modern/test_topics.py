"""The hash over subscribed topics."""

from coordinator.group.modern.topics import NO_TOPICS_HASH, existing_names, known_topics, metadata_hash
from coordinator.ports import TopicFacts
from tests.unit.coordinator.group.consumer.play import FakeTopics


def test_topics_that_exist_by_id_in_the_order_of_names() -> None:
    topics = FakeTopics({"b": 1, "a": 2})
    assert [each.name for each in known_topics(topics, ["b", "x", "a", "b"]).values()] == ["a", "b"]


def test_names_of_any_subscription_that_exist() -> None:
    topics = FakeTopics({"b": 1, "a": 2, "c": 1})
    assert existing_names(topics, [("b", "x"), frozenset({"a", "b", "y"})]) == {"a", "b"}
    assert existing_names(topics, []) == set()


def test_the_hash_is_that_of_what_exists() -> None:
    topics = FakeTopics({"a": 1, "b": 2})
    whole = metadata_hash(topics, ["a", "b"])
    assert whole == metadata_hash(topics, ["b", "missing", "a"])
    assert -(2**63) <= whole < 2**63
    assert metadata_hash(topics, ["missing"]) == NO_TOPICS_HASH == 0
    assert len({whole, metadata_hash(topics, ["a"]), metadata_hash(topics, ["b"])}) == 3


def test_partitions_racks_and_a_new_topic_of_the_same_name_change_it() -> None:
    topics = FakeTopics({"a": 1})
    seen = {metadata_hash(topics, ["a"])}
    topics.put("a", 2)
    seen.add(metadata_hash(topics, ["a"]))
    facts = topics.facts["a"]
    for racks in ((("r",), ("s",)), (("r", "s"), ()), (("s",), ("r",))):
        topics.facts["a"] = TopicFacts("a", facts.topic_id, 2, racks)
        seen.add(metadata_hash(topics, ["a"]))
    topics.delete("a")
    topics.put("a", 1)
    seen.add(metadata_hash(topics, ["a"]))
    assert len(seen) == 6
