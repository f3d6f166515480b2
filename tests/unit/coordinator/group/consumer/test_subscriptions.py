"""Names and resolved expressions together."""

from coordinator.group.consumer.member import Member
from coordinator.group.consumer.subscriptions import (
    subscribed_regexes,
    subscribed_topics,
    topic_ids_of,
    topics_of,
)
from coordinator.group.consumer.tables import Resolved
from tests.unit.coordinator.group.consumer.play import FakeTopics

FOUND = {"t.*": Resolved(frozenset({"ta", "tb"}))}
NAMES, BOTH = Member("a", topics=("u",)), Member("b", topics=("u", "v"), regex="t.*")
UNRESOLVED, NOTHING = Member("c", regex="x.*"), Member("d", regex="")


def test_the_topics_of_a_member() -> None:
    assert topics_of(NAMES, FOUND) == {"u"}
    assert topics_of(BOTH, FOUND) == {"u", "v", "ta", "tb"}
    assert topics_of(UNRESOLVED, FOUND) == topics_of(NOTHING, FOUND) == frozenset()


def test_the_topics_of_all_members() -> None:
    members = [NAMES, BOTH, UNRESOLVED, NOTHING]
    assert subscribed_topics(members, FOUND) == {"u", "v", "ta", "tb"}
    assert list(subscribed_regexes(members)) == ["t.*", "x.*"]


def test_ids_of_those_that_exist() -> None:
    topics = FakeTopics({"u": 1, "ta": 1})
    assert topic_ids_of(BOTH, FOUND, topics) == {topics.facts["u"].topic_id, topics.facts["ta"].topic_id}
