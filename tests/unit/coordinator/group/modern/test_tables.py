"""The replayed state that both newer protocols have."""

from __future__ import annotations

from coordinator.group.modern.records import (
    CONSUMER,
    GroupEpoch,
    TargetEpoch,
    group_epoch_record,
    record,
    target_epoch_record,
    target_record,
    tombstone,
)
from coordinator.group.modern.tables import Codec, ModernTables
from coordinator.group.records import UnknownRecords
from coordinator.journal import Journal
from protocol import messages as m

A = b"a" * 16


def tables() -> tuple[Journal, ModernTables[str, bytes]]:
    journal = Journal()
    codec = Codec(CONSUMER, lambda member_id, value: member_id, lambda value: value)
    return journal, ModernTables(journal, codec, UnknownRecords(lambda text: None))


def replay(made: ModernTables[str, bytes], written: object) -> None:
    key, value = written  # type: ignore[misc]
    made.replay(int.from_bytes(key[:2], "big"), key, value)


def test_a_group_lives_from_its_first_record_to_its_last_tombstone() -> None:
    _, made = tables()
    assert (made.exists("g"), made.epoch("g"), made.target_epoch("g")) == (False, (1, 0), (1, 0))
    replay(made, record(5, "g", "m", m.ConsumerGroupMemberMetadataValue()))
    assert (made.exists("g"), made.epoch("g")) == (True, (1, 0))  # a member that subscribes to nothing
    replay(made, group_epoch_record(CONSUMER, "g", GroupEpoch(4, 9)))
    replay(made, target_record(CONSUMER, "g", "m", {A: frozenset({1})}))
    replay(made, target_epoch_record(CONSUMER, "g", TargetEpoch(4, 77)))
    replay(made, record(8, "g", "m", m.ConsumerGroupCurrentMemberAssignmentValue()))
    assert (made.epoch("g"), made.target_epoch("g")) == ((4, 9), (4, 77))
    assert (made.target("g", "m"), made.target("g", "x")) == ({A: frozenset({1})}, {})
    gone = made.group_tombstones("g")
    assert [int.from_bytes(each.key[:2], "big") for each in gone] == [8, 7, 6, 5, 3]
    for each in gone:
        replay(made, each)
    assert (made.exists("g"), made.group_ids()) == (False, [])


def test_committed_state_lags_and_comes_back() -> None:
    journal, made = tables()
    journal.recording = True
    journal.offset = 5
    replay(made, group_epoch_record(CONSUMER, "g", GroupEpoch(2)))
    assert (made.exists("g"), made.exists_committed("g"), made.committed_group_ids()) == (True, False, [])
    journal.commit(6)
    assert (made.exists_committed("g"), made.committed_epoch("g").epoch) == (True, 2)
    journal.offset = 6
    replay(made, target_epoch_record(CONSUMER, "g", TargetEpoch(2)))
    replay(made, tombstone(3, "g"))
    assert (made.exists("g"), made.committed_target_epoch("g").epoch) == (False, 1)
    journal.roll_back(6)
    assert (made.exists("g"), made.target_epoch("g").epoch) == (True, 1)


def test_values_of_unknown_versions_have_no_effect() -> None:
    _, made = tables()
    key, value = group_epoch_record(CONSUMER, "g", GroupEpoch(2))
    made.replay(3, key, b"\0\x09" + (value or b"")[2:])
    assert not made.exists("g")


def test_the_tombstones_of_a_member() -> None:
    _, made = tables()
    kinds = [int.from_bytes(each.key[:2], "big") for each in made.member_tombstones("g", "m")]
    assert kinds == [8, 7, 5]
