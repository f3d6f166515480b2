"""What consumer groups keep beyond the tables of all newer groups."""

from __future__ import annotations

from coordinator.group.consumer.member import Current, Member, MemberState, current_record, member_record
from coordinator.group.consumer.tables import ConsumerTables, Resolved, cells_of, regex_record
from coordinator.group.modern.records import record, tombstone
from coordinator.group.records import UnknownRecords
from coordinator.journal import Journal
from protocol import messages as m

T = b"t" * 16


class Replayed:
    def __init__(self) -> None:
        self.journal = Journal()
        self.tables = ConsumerTables(self.journal, UnknownRecords(lambda text: None))

    def see(self, *records: tuple[bytes, bytes | None]) -> None:
        for key, value in records:
            self.tables.replay(int.from_bytes(key[:2], "big"), key, value)

    def holders(self) -> dict[tuple[bytes, int], str]:
        return dict(self.tables.holders.row("g"))


def test_who_holds_a_partition() -> None:
    replayed = Replayed()
    replayed.see(current_record("g", "a", Current(2, 1, MemberState.STABLE, {T: {0: 2, 1: 2}})))
    assert replayed.holders() == {(T, 0): "a", (T, 1): "a"}
    replayed.see(current_record("g", "a", Current(2, 2, MemberState(1), {T: {0: 2}}, {T: {1: 2}})))
    assert replayed.holders() == {(T, 0): "a", (T, 1): "a"}
    replayed.see(current_record("g", "a", Current(3, 2, MemberState.STABLE, {T: {0: 2}})))
    assert replayed.holders() == {(T, 0): "a"}
    replayed.see(current_record("g", "b", Current(3, 0, MemberState.STABLE, {T: {0: 3}})))  # of a torn log
    replayed.see(tombstone(8, "g", "a"))
    assert replayed.holders() == {(T, 0): "b"}


def test_holders_go_back_with_the_records() -> None:
    replayed = Replayed()
    replayed.journal.recording = True
    replayed.journal.offset = 1
    replayed.see(current_record("g", "a", Current(2, 1, MemberState.STABLE, {T: {0: 2}})))
    replayed.journal.offset = 2
    replayed.see(tombstone(8, "g", "a"))
    assert replayed.holders() == {}
    replayed.journal.roll_back(2)
    assert replayed.holders() == {(T, 0): "a"}


def test_who_holds_an_instance_id() -> None:
    replayed = Replayed()
    replayed.see(member_record("g", Member("a", "i")))
    assert replayed.tables.static_ids.get("g", "i") == "a"
    replayed.see(member_record("g", Member("b", "i")), tombstone(5, "g", "a"))
    assert replayed.tables.static_ids.get("g", "i") == "b"
    replayed.see(tombstone(5, "g", "b"))
    assert replayed.tables.static_ids.get("g", "i") is None


def test_resolved_expressions_and_the_order_of_tombstones() -> None:
    replayed = Replayed()
    found = Resolved(frozenset({"t"}), 3, 77)
    replayed.see(
        member_record("g", Member("a")),
        regex_record("g", "t.*", found),
        record(4, "g", None, m.ConsumerGroupPartitionMetadataValue(topics=[])),
    )
    assert replayed.tables.regexes.get("g", "t.*") == found
    gone = replayed.tables.group_tombstones("g")
    assert [int.from_bytes(each.key[:2], "big") for each in gone] == [6, 5, 16, 4, 3]
    replayed.see(*gone)
    assert not replayed.tables.exists("g")
    assert replayed.tables.regexes.row("g") == {}


def test_a_member_without_a_standing_holds_nothing() -> None:
    assert cells_of(None) == {}
