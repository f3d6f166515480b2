"""The uniform assignor where all members subscribe to the same topics."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.assignors.uniform import UniformAssignor
from coordinator.group.modern.assignment import size
from coordinator.group.modern.steps import outcome
from coordinator.group.modern.target import MemberSpec

T, U = b"t" * 16, b"u" * 16


def spec(topics: tuple[bytes, ...], **target: list[int]) -> MemberSpec:
    had = {{"t": T, "u": U}[name]: frozenset(numbers) for name, numbers in target.items()}
    return MemberSpec(frozenset(topics), had)


def test_a_new_group_is_shared_equally() -> None:
    found = outcome(UniformAssignor().assign({"a": spec((T,)), "b": spec((T,))}, {T: range(4)}))
    assert found == {"a": {T: frozenset({0, 1})}, "b": {T: frozenset({2, 3})}}


def test_who_has_too_much_gives_up_just_that() -> None:
    members = {"a": spec((T,), t=[0, 1, 2, 3, 4]), "b": spec((T,))}
    found = outcome(UniformAssignor().assign(members, {T: range(5)}))
    assert found["a"] == {T: frozenset({0, 1, 2})}
    assert found["b"] == {T: frozenset({3, 4})}


def test_the_odd_partition_stays_where_it_is() -> None:
    members = {"a": spec((T,), t=[0]), "b": spec((T,), t=[1, 2])}
    assert outcome(UniformAssignor().assign(members, {T: range(3)})) == {
        "a": {T: frozenset({0})}, "b": {T: frozenset({1, 2})},
    }  # fmt: skip


def test_topics_that_have_gone_or_are_not_subscribed_are_dropped() -> None:
    members = {"a": spec((T,), t=[0, 7], u=[0])}
    assert outcome(UniformAssignor().assign(members, {T: range(2)})) == {"a": {T: frozenset({0, 1})}}


def test_nobody_and_nothing() -> None:
    assert outcome(UniformAssignor().assign({}, {T: range(2)})) == {}
    assert outcome(UniformAssignor().assign({"a": spec(())}, {})) == {"a": {}}


@given(st.lists(st.sets(st.integers(0, 11)), min_size=1, max_size=5), st.integers(0, 8), st.integers(0, 4))
def test_counts_differ_by_one_at_most_and_nothing_moves_without_need(
    had: list[set[int]], t: int, u: int
) -> None:
    taken: set[int] = set()
    members = {}
    for at, numbers in enumerate(had):
        members[str(at)] = spec((T, U), t=sorted(numbers - taken))
        taken |= numbers
    found = outcome(UniformAssignor().assign(members, {T: range(t), U: range(u)}))
    given = sorted((topic, number) for each in found.values() for topic in each for number in each[topic])
    assert given == [(T, number) for number in range(t)] + [(U, number) for number in range(u)]
    sizes = [size(assigned) for assigned in found.values()]
    assert max(sizes) - min(sizes) <= 1
    for member_id, member in members.items():
        valid = member.target.get(T, frozenset()) & frozenset(range(t))
        kept = found[member_id].get(T, frozenset()) & valid
        assert kept == valid or len(kept) >= (t + u) // len(members)
    again = {member_id: MemberSpec(member.topics, found[member_id]) for member_id, member in members.items()}
    assert outcome(UniformAssignor().assign(again, {T: range(t), U: range(u)})) == found
