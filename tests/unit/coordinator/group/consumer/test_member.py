"""Members and their standing as records 5 and 8."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.consumer.member import (
    ClassicPart,
    Current,
    Member,
    MemberState,
    current_record,
    member_record,
    read_current,
    read_member,
)
from coordinator.group.modern.records import record
from protocol import messages as m

TEXT = st.text("abc", max_size=3)
MEMBERS = st.builds(
    Member,
    st.just("m"),
    st.none() | TEXT,
    st.none() | TEXT,
    TEXT,
    TEXT,
    st.lists(TEXT, unique=True).map(lambda names: tuple(sorted(names))),
    TEXT,
    st.integers(-1, 2**31 - 1),
    st.none() | TEXT,
    st.none() | st.builds(ClassicPart, st.integers(1, 9), st.just((("range", b"x"), ("rr", b"")))),
)
EPOCHS = st.dictionaries(
    st.sampled_from([b"a" * 16, b"b" * 16]),
    st.dictionaries(st.integers(0, 5), st.integers(0, 9), min_size=1),
)
STANDINGS = st.builds(
    Current, st.integers(-2, 9), st.integers(-1, 9), st.sampled_from(MemberState), EPOCHS, EPOCHS
)


@given(MEMBERS)
def test_members_there_and_back(member: Member) -> None:
    written = member_record("g", member)
    assert written.key == b"\0\5\0\1g\0\1m"
    assert read_member("m", written.value or b"") == member


@given(STANDINGS)
def test_standings_there_and_back(current: Current) -> None:
    assert read_current(current_record("g", "m", current).value or b"") == current


def test_partitions_without_epochs_are_as_old_as_the_member() -> None:
    part = m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
        topic_id=b"a" * 16, partitions=[1, 2], assignment_epochs=None
    )
    value = m.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=5, previous_member_epoch=4, state=9, assigned_partitions=[part]
    )
    read = read_current(record(8, "g", "m", value).value or b"")
    assert read is not None
    assert read.assigned == {b"a" * 16: {1: 5, 2: 5}}
    assert read.state is MemberState.UNKNOWN


def test_versions_that_are_not_known() -> None:
    assert read_member("m", b"\0\1") is None
    assert read_current(b"\0\1") is None
