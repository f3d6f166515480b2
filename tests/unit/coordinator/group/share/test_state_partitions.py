"""Partitions on their way from nothing to initialized, and to deleted (record 15)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.share.state_partitions import (
    StatePartitions,
    StateTopic,
    begin,
    deleted,
    deleting,
    deleting_all,
    failed,
    merged,
    read_state,
    state_record,
    state_tombstone,
    succeeded,
    topics_gone,
    without,
)

T, U = bytes(15) + b"t", bytes(15) + b"u"
NAMES = {T: "t", U: "u"}


def topic(name: str, *partitions: int) -> StateTopic:
    return StateTopic(name, frozenset(partitions))


def test_partitions_are_added_and_taken_out_one_by_one() -> None:
    assert merged({T: topic("t", 0)}, {T: topic("t", 1), U: topic("u", 0)}) == {
        T: topic("t", 0, 1),
        U: topic("u", 0),
    }
    assert without({T: topic("t", 0, 1), U: topic("u", 0)}, {T: [0], U: [0]}) == {T: topic("t", 1)}


def test_from_nothing_to_initialized() -> None:
    state = begin(StatePartitions(), {T: topic("t", 0, 1)})
    assert state == StatePartitions({T: topic("t", 0, 1)})
    state = succeeded(state, {T: [0]}, NAMES.get)
    assert state == StatePartitions({T: topic("t", 1)}, {T: topic("t", 0)})
    state = failed(state, {T: [1]})
    assert state == StatePartitions({}, {T: topic("t", 0)})


def test_only_what_waits_becomes_initialized() -> None:
    state = StatePartitions({T: topic("t", 0)})
    assert succeeded(state, {T: [0, 1], U: [0]}, NAMES.get).initialized == {T: topic("t", 0)}
    assert succeeded(state, {T: [0]}, lambda _: None) == StatePartitions()


def test_deleting() -> None:
    state = StatePartitions({U: topic("u", 0)}, {T: topic("t", 0)})
    going = deleting(state, {T: "t"})
    assert going == StatePartitions({U: topic("u", 0)}, {}, {T: "t"})
    assert deleted(going, [T]) == StatePartitions({U: topic("u", 0)})
    assert deleting_all(state) == StatePartitions({}, {}, {T: "t", U: "u"})
    assert begin(going, {T: topic("t", 0)}).deleting == {}


def test_topics_that_are_gone() -> None:
    state = StatePartitions({T: topic("t", 0)}, {T: topic("t", 1), U: topic("u", 0)}, {T: "t"})
    assert state.topic_ids() == {T, U}
    assert topics_gone(state, [T]) == StatePartitions({}, {U: topic("u", 0)})


TOPICS = st.dictionaries(
    st.binary(min_size=16, max_size=16),
    st.builds(StateTopic, st.text(max_size=4), st.frozensets(st.integers(0, 2**31 - 1), min_size=1)),
    max_size=3,
)


@given(TOPICS, TOPICS, st.dictionaries(st.binary(min_size=16, max_size=16), st.text(max_size=4), max_size=3))
def test_states_come_back_as_they_were(
    initializing: dict[bytes, StateTopic], initialized: dict[bytes, StateTopic], going: dict[bytes, str]
) -> None:
    state = StatePartitions(initializing, initialized, going)
    record = state_record("g", state)
    assert record.key == b"\x00\x0f\x00\x01g"
    assert record.value is not None
    read = read_state(record.value, 77)
    assert read == state
    assert read is not None
    assert read.since_ms == 77
    assert read_state(b"\x00\x01" + record.value[2:], 0) is None


def test_the_last_record() -> None:
    assert state_tombstone("g") == (b"\x00\x0f\x00\x01g", None)
