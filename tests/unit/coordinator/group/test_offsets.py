"""Offsets: commits, transactions, tombstones; and that a reload finds the state that was live."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group.offsets import Commit, Offsets
from coordinator.group.records import Offset, OffsetKey, UnknownRecords
from coordinator.journal import Journal
from coordinator.result import Producer, Result
from coordinator.shard import NOT_TRANSACTIONAL
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.offset_shard import Coordinator


class Log:
    """Offsets with a log of their own; what is written is applied at once."""

    def __init__(self) -> None:
        self.offsets = Offsets(Journal(), UnknownRecords())
        self.end = 0

    def write(self, records: list, producer_id: int = NOT_TRANSACTIONAL) -> None:
        for key, value in records:
            self.offsets.replay(key, value, self.end, producer_id)
            self.end += 1

    def commit(self, group: str, offset: int, producer_id: int = NOT_TRANSACTIONAL, topic: str = "t") -> None:
        records, errors = self.offsets.commit(group, [Commit(topic, 0, offset)], 1000)
        assert errors == [E.NONE]
        self.write(records, producer_id)

    def finish(self, producer_id: int, commit: bool) -> None:
        self.offsets.replay_end_marker(producer_id, commit)
        self.end += 1

    def fetch(self, group: str = "g", *, stable: bool = False) -> int | E:
        (found,) = self.offsets.fetch(group, [("t", 0)], require_stable=stable)
        return found.error or found.offset


def test_metadata_is_limited_by_utf16_units_and_others_are_stored() -> None:
    log = Log()
    texts = ["x" * 4096, "x" * 4097, "😀" * 2048, "😀" * 2048 + "x", None]
    commits = [Commit("t", number, 1, 0, text) for number, text in enumerate(texts)]
    records, errors = log.offsets.commit("g", commits, 5)
    long = E.OFFSET_METADATA_TOO_LARGE
    assert errors == [E.NONE, long, E.NONE, long, E.NONE]
    log.write(records)
    found = log.offsets.fetch("g", None)
    assert [(each.partition, len(each.metadata)) for each in found] == [(0, 4096), (2, 2048), (4, 0)]


def test_what_was_never_committed_is_minus_one() -> None:
    (found,) = Log().offsets.fetch("g", [("t", 3)])
    assert (found.offset, found.leader_epoch, found.metadata, found.error) == (-1, -1, "", E.NONE)


def test_an_older_offset_may_be_committed() -> None:
    log = Log()
    log.commit("g", 10)
    log.commit("g", 4)
    assert log.fetch() == 4


def test_a_request_s_own_retention_becomes_an_expiry_time() -> None:
    log = Log()
    records, _ = log.offsets.commit("g", [Commit("t", 0, 1, 6)], 1000, retention_ms=50)
    log.write(records)
    assert log.offsets.committed.get("g", ("t", 0)) == Offset(1, -1, "", 1000, 1050, 0)


def test_a_transactional_commit_waits_for_its_marker() -> None:
    log = Log()
    log.commit("g", 1)
    log.commit("g", 2, 7)
    assert log.fetch() == 1
    assert log.fetch(stable=True) is E.UNSTABLE_OFFSET_COMMIT
    log.finish(7, True)
    assert log.fetch(stable=True) == 2
    assert not log.offsets.pending.row(7)


def test_an_aborted_transaction_changes_nothing() -> None:
    log = Log()
    log.commit("g", 1)
    log.commit("g", 2, 7)
    log.finish(7, False)
    assert log.fetch(stable=True) == 1


def test_a_later_plain_commit_survives_an_older_transactional_one() -> None:
    log = Log()
    log.commit("g", 5, 7)
    log.commit("g", 3)
    log.finish(7, True)
    assert log.fetch() == 3


def test_two_producers_are_decided_apart() -> None:
    log = Log()
    log.commit("g", 5, 7)
    log.commit("g", 6, 8)
    log.finish(8, False)
    assert log.fetch(stable=True) is E.UNSTABLE_OFFSET_COMMIT
    log.finish(7, True)
    assert log.fetch(stable=True) == 5


def test_deleting_drops_what_is_pending_too() -> None:
    log = Log()
    log.commit("g", 1)
    log.commit("g", 2, 7)
    log.commit("other", 9, 7)
    log.write(log.offsets.delete_group("g"))
    assert not log.offsets.has_any("g")
    log.finish(7, True)
    assert log.fetch() == -1
    assert log.fetch("other") == 9


def test_what_is_committed_and_deleted_for_very_many_partitions_is_live_what_a_reload_finds() -> None:
    coordinator = Coordinator()
    topic, offsets = coordinator.topic, coordinator.offsets

    def write_all(records: list) -> None:
        coordinator.runtime.write(0, lambda _: Result(records, None), lambda *_: None)
        topic.commit()

    commits = [Commit("täglich", index, index, index % 3, "m" * (index % 2)) for index in range(9000)]
    write_all(offsets.commit("gruppe", commits, 7)[0])
    found = offsets.fetch("gruppe", None)
    assert [(each.partition, each.offset, each.leader_epoch, each.metadata) for each in found] == [
        (each.partition, each.offset, each.leader_epoch, each.metadata) for each in commits
    ]
    assert state(Coordinator(topic).offsets) == state(offsets)
    write_all(offsets.delete_topics(["gruppe"], lambda _, index: index % 2 == 0))
    assert len(offsets.cells("gruppe")) == 4500
    assert state(Coordinator(topic).offsets) == state(offsets)
    write_all(offsets.delete_group("gruppe"))
    assert state(Coordinator(topic).offsets) == state(offsets) == ({}, {}, {})


def test_deleted_topics_vanish_from_all_groups() -> None:
    log = Log()
    log.commit("g", 1)
    log.commit("g", 2, topic="u")
    log.commit("h", 3, 7)
    log.write(log.offsets.delete_topics(["g", "h"], lambda topic, partition: topic == "t"))
    assert log.offsets.groups() == ["g"]
    assert list(log.offsets.committed.row("g")) == [("u", 0)]


def test_only_known_partitions_are_deleted() -> None:
    log = Log()
    log.commit("g", 1)
    assert len(log.offsets.delete("g", [("t", 0), ("t", 1), ("u", 0)])) == 1


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 1), st.integers(0, 1), st.integers(-1, 1)),
        st.tuples(st.just("delete"), st.integers(0, 1), st.integers(0, 1), st.just(-1)),
        st.tuples(st.just("end"), st.integers(0, 1), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("decide"), st.integers(1, 3), st.just(0), st.just(0)),
        st.tuples(st.just("fail"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("refuse"), st.integers(0, 1), st.integers(0, 1), st.integers(-1, 1)),
    ),
    max_size=30,
)


def write(
    coordinator: Coordinator, what: str, group: int, partition: int, producer: int, number: int
) -> None:
    if what == "delete":
        name, cells = f"g{group}", [("t", partition)]
        coordinator.runtime.write(
            0, lambda shard: Result(shard.offsets.delete(name, cells), None), lambda error, response: None
        )
    elif what == "end":
        coordinator.end(group, bool(partition))
    else:
        transaction = Producer(producer, 0) if producer >= 0 else Producer()
        coordinator.commit(f"g{group}", number, producer=transaction, partition=partition)


def state(offsets: Offsets) -> tuple[dict, dict, dict]:
    return (
        {(group, cell): value for group, cell, value in offsets.committed.items()},
        {(producer, key): value for producer, key, value in offsets.pending.items()},
        {(group, cell): sorted(value) for group, cell, value in offsets.producers.items()},
    )


def committed_state(offsets: Offsets) -> tuple[dict, dict]:
    return (
        {
            g: dict(offsets.committed.committed_row(g))
            for g in sorted(offsets.committed.committed_outer_keys())
        },
        {p: dict(offsets.pending.committed_row(p)) for p in sorted(offsets.pending.committed_outer_keys())},
    )


@settings(max_examples=120, deadline=None, derandomize=True)
@given(STEPS)
def test_a_reload_finds_the_state_that_was_live(steps: list[tuple[str, int, int, int]]) -> None:
    coordinator = Coordinator()
    topic = coordinator.topic
    for number, (what, group, partition, producer) in enumerate(steps):
        if what == "decide":
            topic.commit(min(group, len(topic.undecided)))
        elif what == "fail":
            if topic.undecided:
                topic.fail(E.KAFKA_STORAGE_ERROR)
        else:
            topic.refuse = E.NOT_ENOUGH_REPLICAS if what == "refuse" else None
            write(coordinator, what, group, partition, producer, number)
            topic.refuse = None
    assert state(Coordinator(topic).offsets) == state(coordinator.offsets)
    seen = committed_state(coordinator.offsets)
    if topic.undecided:
        topic.fail(E.KAFKA_STORAGE_ERROR)
    reloaded = Coordinator(topic).offsets
    assert committed_state(reloaded) == seen
    assert state(reloaded) == state(coordinator.offsets)
    for _, key, _ in reloaded.pending.items():
        assert isinstance(key, OffsetKey)
