"""The assignor `simple`: nobody goes without, and what is had stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.steps import outcome
from coordinator.group.modern.target import MemberSpec
from coordinator.group.share.assignor import SimpleAssignor

T, U = b"t" * 16, b"u" * 16


def assign(
    members: dict[str, tuple[set[bytes], Assignment]], partitions: dict[bytes, list[int]]
) -> dict[str, Assignment]:
    specs = {name: MemberSpec(frozenset(topics), target) for name, (topics, target) in members.items()}
    return outcome(SimpleAssignor().assign(specs, partitions))


def counts(targets: dict[str, Assignment]) -> dict[tuple[bytes, int], int]:
    found: dict[tuple[bytes, int], int] = {}
    for target in targets.values():
        for topic_id, partitions in target.items():
            for index in partitions:
                found[topic_id, index] = found.get((topic_id, index), 0) + 1
    return found


def test_partitions_are_dealt_out_evenly() -> None:
    targets = assign({"a": ({T}, {}), "b": ({T}, {})}, {T: [0, 1, 2, 3]})
    assert sorted(len(target[T]) for target in targets.values()) == [2, 2]
    assert counts(targets) == {(T, index): 1 for index in range(4)}


def test_more_members_than_partitions_share() -> None:
    targets = assign({name: ({T}, {}) for name in "abcde"}, {T: [0, 1]})
    assert sorted(len(target[T]) for target in targets.values()) == [1, 1, 1, 1, 2]
    assert counts(targets) == {(T, 0): 3, (T, 1): 3}


def test_what_is_had_stays() -> None:
    before: dict[str, tuple[set[bytes], Assignment]] = {
        "a": ({T}, {T: frozenset({2, 3})}),
        "b": ({T}, {T: frozenset({0, 1})}),
    }
    assert assign(before, {T: [0, 1, 2, 3]}) == {"a": {T: frozenset({2, 3})}, "b": {T: frozenset({0, 1})}}
    before["c"] = ({T}, {})
    after = assign(before, {T: [0, 1, 2, 3]})
    assert after["a"][T] <= {2, 3}
    assert after["b"][T] <= {0, 1}
    assert after["c"]


def test_topics_go_to_those_who_want_them() -> None:
    targets = assign({"a": ({T}, {}), "b": ({T, U}, {}), "c": (set(), {})}, {T: [0, 1], U: [0]})
    assert targets["c"] == {}
    assert U not in targets["a"]
    assert targets["b"][U] == {0}


TARGETS = st.dictionaries(st.sampled_from([T, U]), st.frozensets(st.integers(0, 5), min_size=1))
MEMBERS = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(st.sets(st.sampled_from([T, U])), TARGETS), min_size=1
)


@given(MEMBERS, st.integers(0, 4), st.integers(0, 4))
def test_nobody_goes_without(
    members: dict[str, tuple[set[bytes], Assignment]], count_t: int, count_u: int
) -> None:
    partitions = {T: list(range(count_t)), U: list(range(count_u))}
    wanted = {
        topic_id: each
        for topic_id, each in partitions.items()
        if any(topic_id in m[0] for m in members.values())
    }
    targets = assign(members, wanted)
    assert targets.keys() == members.keys()
    held = counts(targets)
    for topic_id, indexes in wanted.items():
        for index in indexes:
            assert held.get((topic_id, index), 0) >= 1
    for name, (topics, _) in members.items():
        assert targets[name].keys() <= topics
        if any(wanted.get(topic_id) for topic_id in topics):
            assert targets[name]
    assert set(held) <= {(topic_id, index) for topic_id in wanted for index in wanted[topic_id]}


@given(MEMBERS, st.integers(1, 5))
def test_assigning_again_changes_nothing(
    members: dict[str, tuple[set[bytes], Assignment]], count: int
) -> None:
    once = assign({name: ({T}, target) for name, (_, target) in members.items()}, {T: list(range(count))})
    again = assign({name: ({T}, once[name]) for name in members}, {T: list(range(count))})
    assert again == once
