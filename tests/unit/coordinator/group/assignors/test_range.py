"""The range assignor."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.assignors import builtin, chosen_assignors
from coordinator.group.assignors.range import RangeAssignor
from coordinator.group.modern.steps import outcome
from coordinator.group.modern.target import MemberSpec

T, U = b"t" * 16, b"u" * 16


def spec(*topics: bytes, instance_id: str | None = None) -> MemberSpec:
    return MemberSpec(frozenset(topics), {}, instance_id)


def assign(members: dict[str, MemberSpec], **counts: int) -> dict[str, dict[bytes, list[int]]]:
    partitions = {{"t": T, "u": U}[name]: range(count) for name, count in counts.items()}
    found = outcome(RangeAssignor().assign(members, partitions))
    return {
        member: {topic: sorted(numbers) for topic, numbers in assigned.items()}
        for member, assigned in found.items()
    }


def test_topics_with_equally_many_partitions_are_shared_alike() -> None:
    members = {"b": spec(T, U), "a": spec(T, U)}
    assert assign(members, t=3, u=3) == {"a": {T: [0, 1], U: [0, 1]}, "b": {T: [2], U: [2]}}


def test_each_topic_is_shared_by_those_who_read_it() -> None:
    members = {"a": spec(T), "b": spec(T, U), "c": spec(U)}
    assert assign(members, t=2, u=3) == {"a": {T: [0]}, "b": {T: [1], U: [0, 1]}, "c": {U: [2]}}


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    members = {"a": spec(T), "z": spec(T, instance_id="1"), "y": spec(T, instance_id="2")}
    assert assign(members, t=4) == {"z": {T: [0, 1]}, "y": {T: [2]}, "a": {T: [3]}}


def test_more_members_than_partitions_and_topics_that_nobody_reads() -> None:
    assert assign({"a": spec(T), "b": spec(T)}, t=1, u=2) == {"a": {T: [0]}, "b": {}}


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6), st.integers(0, 9), st.integers(0, 9))
def test_every_partition_that_somebody_reads_has_one_owner(
    reads: list[tuple[bool, bool]], t: int, u: int
) -> None:
    members = {
        str(at): spec(*([T] if first else []), *([U] if second else []))
        for at, (first, second) in enumerate(reads)
    }
    found = assign(members, t=t, u=u)
    for topic, count, place in ((T, t, 0), (U, u, 1)):
        given = sorted(number for each in found.values() for number in each.get(topic, []))
        assert given == (list(range(count)) if any(read[place] for read in reads) else [])


def test_assignors_are_chosen_by_name_or_class() -> None:
    assert list(builtin()) == ["uniform", "range"]
    names = ["org.apache.kafka.coordinator.group.assignor.RangeAssignor", "com.example.Mine", "uniform"]
    assert list(chosen_assignors(names)) == ["range", "uniform"]
    assert list(chosen_assignors(["com.example.Mine"])) == ["uniform", "range"]
