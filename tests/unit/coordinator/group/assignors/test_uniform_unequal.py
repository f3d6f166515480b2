"""The uniform assignor where members subscribe to different topics."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.assignors.uniform import UniformAssignor
from coordinator.group.modern.assignment import size
from coordinator.group.modern.steps import outcome
from coordinator.group.modern.target import MemberSpec

TOPICS = [bytes([number]) * 16 for number in range(3)]
T, U, V = TOPICS


def test_topics_with_few_readers_do_not_make_others_poor() -> None:
    members = {"a": MemberSpec(frozenset({T, U}), {}), "b": MemberSpec(frozenset({U}), {})}
    found = outcome(UniformAssignor().assign(members, {T: range(2), U: range(2)}))
    assert found == {"a": {T: frozenset({0, 1})}, "b": {U: frozenset({0, 1})}}


def test_what_a_member_had_stays_unless_the_balance_asks_for_it() -> None:
    members = {
        "a": MemberSpec(frozenset({T, U}), {T: frozenset({0}), U: frozenset({0, 1, 2})}),
        "b": MemberSpec(frozenset({U}), {}),
    }
    found = outcome(UniformAssignor().assign(members, {T: range(1), U: range(3)}))
    assert size(found["a"]) == size(found["b"]) == 2
    assert found["a"][T] == frozenset({0})


@given(
    st.lists(st.sets(st.sampled_from(TOPICS)), min_size=2, max_size=5),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
)
def test_every_partition_that_somebody_reads_has_one_owner_and_no_move_would_help(
    reads: list[set[bytes]], counts: list[int]
) -> None:
    members = {str(at): MemberSpec(frozenset(topics), {}) for at, topics in enumerate(reads)}
    partitions = {topic: range(count) for topic, count in zip(TOPICS, counts, strict=True)}
    found = outcome(UniformAssignor().assign(members, partitions))
    given = sorted((topic, number) for each in found.values() for topic in each for number in each[topic])
    assert given == [
        (topic, number)
        for topic, numbers in partitions.items()
        if any(topic in read for read in reads)
        for number in numbers
    ]
    for giver in found:
        for topic in found[giver]:
            assert topic in members[giver].topics
            for taker in found:
                if topic in members[taker].topics:
                    assert size(found[giver]) - size(found[taker]) <= 1
