"""Assignors: range and cooperative-sticky, by Kafka's rules."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.groups.assignors import (
    ASSIGNORS,
    Subscriber,
    cooperative_sticky_assign,
    range_assign,
    subscriber,
    subscription_blob,
)


def test_range_gives_runs_and_one_more_to_the_first() -> None:
    members = [Subscriber("b", None, ["t", "u"]), Subscriber("a", None, ["t", "u"])]
    assert range_assign(members, {"t": 3, "u": 1}) == {
        "a": [("t", 0), ("t", 1), ("u", 0)],
        "b": [("t", 2)],
    }


def test_range_takes_static_members_first_by_their_instance_ids() -> None:
    members = [Subscriber("a", None, ["t"]), Subscriber("z", "i-2", ["t"]), Subscriber("y", "i-10", ["t"])]
    assert range_assign(members, {"t": 3}) == {"y": [("t", 0)], "z": [("t", 1)], "a": [("t", 2)]}


def test_range_looks_at_who_subscribes_and_at_topics_that_exist() -> None:
    members = [Subscriber("a", None, ["t", "gone"]), Subscriber("b", None, ["u"])]
    assert range_assign(members, {"t": 2, "u": 1}) == {"a": [("t", 0), ("t", 1)], "b": [("u", 0)]}


def test_more_members_than_partitions_leaves_some_without() -> None:
    members = [Subscriber(name, None, ["t"]) for name in "abc"]
    assert range_assign(members, {"t": 2}) == {"a": [("t", 0)], "b": [("t", 1)], "c": []}


def test_a_partition_that_moves_is_first_taken_and_then_given() -> None:
    old = Subscriber("a", None, ["t"], [("t", index) for index in range(4)], 5)
    new = Subscriber("b", None, ["t"])
    first = cooperative_sticky_assign([old, new], {"t": 4})
    assert (len(first["a"]), first["b"]) == (2, [])
    old.owned, new.generation, old.generation = first["a"], 6, 6
    second = cooperative_sticky_assign([old, new], {"t": 4})
    assert second["a"] == first["a"]
    assert sorted([*second["a"], *second["b"]]) == [("t", index) for index in range(4)]


def test_of_two_that_claim_a_partition_the_younger_generation_keeps_it() -> None:
    stale = Subscriber("a", None, ["t"], [("t", 0), ("t", 1)], 3)
    fresh = Subscriber("b", None, ["t"], [("t", 0)], 4)
    assert cooperative_sticky_assign([stale, fresh], {"t": 2}) == {"a": [("t", 1)], "b": [("t", 0)]}


def test_what_is_claimed_twice_in_a_generation_is_nobodys() -> None:
    members = [Subscriber(name, None, ["t"], [("t", 0)], 4) for name in "ab"]
    assigned = cooperative_sticky_assign(members, {"t": 1})
    assert sorted(place for places in assigned.values() for place in places) == [("t", 0)]


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[Subscriber], dict[str, int]]:
    counts = draw(st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 7), min_size=1))
    topics = st.lists(st.sampled_from(sorted(counts)), unique=True)
    owned = st.lists(st.tuples(st.sampled_from(sorted(counts)), st.integers(0, 8)), unique=True, max_size=6)
    names = draw(st.lists(st.sampled_from("abcdef"), unique=True, min_size=1))
    return [
        Subscriber(name, None, draw(topics), draw(owned), draw(st.integers(-1, 2))) for name in names
    ], counts


@settings(max_examples=150, deadline=None, derandomize=True)
@given(groups())
def test_every_partition_of_a_subscribed_topic_has_one_owner_who_subscribes(group) -> None:
    members, counts = group
    topics_of = {each.member_id: each.topics for each in members}
    wanted = {topic for each in members for topic in each.topics}
    everything = sorted((topic, index) for topic in wanted for index in range(counts[topic]))
    for name, assign in ASSIGNORS.items():
        assigned = assign(members, counts)
        given_places = sorted(place for places in assigned.values() for place in places)
        assert len(set(given_places)) == len(given_places)
        assert all(topic in topics_of[member] for member, places in assigned.items() for topic, _ in places)
        if name == "range" or not any(each.owned for each in members):
            assert given_places == everything


@settings(max_examples=100, deadline=None, derandomize=True)
@given(groups())
def test_sticky_settles_in_a_second_round_and_stays(group) -> None:
    members, counts = group
    for each in members:
        each.owned, each.generation = [], 1
    for _ in range(3):
        assigned = cooperative_sticky_assign(members, counts)
        for each in members:
            each.owned = assigned[each.member_id]
    before = assigned
    assert cooperative_sticky_assign(members, counts) == before
    loads = {each.member_id: len(before[each.member_id]) for each in members}
    for giver in members:
        for topic, _ in before[giver.member_id]:
            takers = [each.member_id for each in members if topic in each.topics]
            assert loads[giver.member_id] - min(loads[taker] for taker in takers) <= 1


def test_a_subscription_survives_its_blob() -> None:
    for assignor in ASSIGNORS:
        read = subscriber("m", "i", subscription_blob(["u", "t"], assignor, 7))
        assert read == Subscriber("m", "i", ["t", "u"], [], 7)
