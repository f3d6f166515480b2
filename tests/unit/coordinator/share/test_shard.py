"""One partition of the share coordinator: records, fences, snapshots, what is needed of the log."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.result import CoordinatorRecord, Result
from coordinator.share.batches import StateBatch
from coordinator.share.records import ShareKey, read_snapshot, record_type
from coordinator.share.shard import BYTES_AT_ONCE
from protocol.errors import ErrorCode as E
from protocol.records.batch import records
from tests.unit.coordinator.share.coordinator import KEY, TOPIC_ID, Coordinator


def kinds(coordinator: Coordinator) -> list[str]:
    """The records of the log: s snapshot, u update, t tombstone."""
    found = []
    for batch in coordinator.topic.logs.get(0, []):
        for record in records(batch):
            assert record.key is not None
            found.append("t" if record.value is None else "su"[record_type(record.key)])
    return found


def last_snapshot(coordinator: Coordinator) -> object:
    [*_, record] = records(coordinator.topic.logs[0][-1])
    assert record.value is not None
    return read_snapshot(record.value)


def test_every_so_many_updates_a_snapshot_takes_all_together() -> None:
    coordinator = Coordinator(updates_per_snapshot=3)
    coordinator.ask("initialize", 2, 0)
    for offset in range(8):
        coordinator.write((offset, offset, 2, 1), state_epoch=2)
    assert "".join(kinds(coordinator)) == "suuusuuus"
    snapshot = last_snapshot(coordinator)
    assert (snapshot.snapshot_epoch, snapshot.state_epoch) == (2, 2)
    assert [(each.first_offset, each.last_offset) for each in snapshot.state_batches] == [(0, 7)]


def test_without_updates_each_write_is_a_snapshot() -> None:
    coordinator = Coordinator(updates_per_snapshot=0)
    coordinator.ask("initialize", 0, 0)
    coordinator.write((0, 1, 2, 1))
    coordinator.ask("read", 3)
    assert "".join(kinds(coordinator)) == "sss"
    assert last_snapshot(coordinator).leader_epoch == 3


def test_a_read_writes_a_new_leader_epoch_down_once() -> None:
    coordinator = Coordinator()
    coordinator.ask("initialize", 0, 0)
    assert coordinator.ask("read", 0).error is E.NONE
    assert coordinator.ask("read", 4).error is E.NONE
    assert coordinator.ask("read", 4).error is E.NONE
    assert "".join(kinds(coordinator)) == "su"
    assert coordinator.write((0, 0, 2, 1), leader_epoch=3).error is E.FENCED_LEADER_EPOCH
    assert "".join(kinds(coordinator)) == "su"  # reference, 65: no state change


def test_refusals_come_in_kafkas_order() -> None:
    coordinator = Coordinator()
    unknown = ShareKey("g", b"?" * 16, 0)
    beyond = ShareKey("g", TOPIC_ID, 4)
    assert coordinator.ask("read", 0).error is E.INVALID_REQUEST
    assert (
        coordinator.write(key=unknown).message
        == "Write operation on uninitialized share partition not allowed."
    )
    assert coordinator.ask("initialize", 0, 0, key=unknown).error is E.UNKNOWN_TOPIC_OR_PARTITION
    assert coordinator.ask("initialize", 0, 0, key=beyond).error is E.UNKNOWN_TOPIC_OR_PARTITION
    coordinator.ask("initialize", 5, 0)
    coordinator.ask("read", 5)
    coordinator.partition_counts.clear()
    assert coordinator.write(leader_epoch=4, state_epoch=4).error is E.FENCED_LEADER_EPOCH
    assert coordinator.write(leader_epoch=5, state_epoch=4).error is E.FENCED_STATE_EPOCH
    assert coordinator.write(leader_epoch=5, state_epoch=5).error is E.UNKNOWN_TOPIC_OR_PARTITION
    assert coordinator.ask("initialize", 4, 0).error is E.FENCED_STATE_EPOCH
    assert coordinator.ask("read", 5).error is E.UNKNOWN_TOPIC_OR_PARTITION
    assert coordinator.ask("summary").error is E.UNKNOWN_TOPIC_OR_PARTITION
    assert coordinator.ask("delete").error is E.UNKNOWN_TOPIC_OR_PARTITION


def test_batches_that_run_backwards_are_refused() -> None:
    coordinator = Coordinator()
    coordinator.ask("initialize", 0, 0)
    assert coordinator.write((5, 4, 2, 1)).error is E.INVALID_REQUEST
    assert "".join(kinds(coordinator)) == "s"


def test_an_append_that_fails_leaves_the_state_as_it_was() -> None:
    coordinator = Coordinator()
    coordinator.ask("initialize", 0, 0)
    coordinator.write((0, 4, 2, 1))
    before = coordinator.shard.state(KEY)
    coordinator.hold = True
    told: list = []
    for _ in range(3):
        coordinator.manager.delete(KEY, told.append)
        coordinator.manager.initialize(KEY, 9, 9, told.append)
    assert coordinator.shard.state(KEY).state_epoch == 9
    coordinator.topic.fail(E.KAFKA_STORAGE_ERROR)
    assert [answer.error for answer in told] == [E.NOT_COORDINATOR] * 6
    assert coordinator.shard.state(KEY) == before


def test_reading_waits_for_what_it_has_seen() -> None:
    coordinator = Coordinator()
    coordinator.ask("initialize", 0, 0)
    coordinator.hold = True
    told: list = []
    coordinator.manager.initialize(KEY, 3, 0, told.append)
    coordinator.manager.summary(KEY, told.append)
    assert told == []
    coordinator.hold = False
    coordinator.commit()
    assert told[1].state.state_epoch == 3


def test_the_log_is_needed_from_the_oldest_last_snapshot_on() -> None:
    coordinator = Coordinator(updates_per_snapshot=1)
    shard, other = coordinator.shard, ShareKey("h", TOPIC_ID, 1)
    assert shard.needed_from() is None
    coordinator.ask("initialize", 0, 0)  # offset 0
    coordinator.ask("initialize", 0, 0, key=other)  # 1
    coordinator.write((0, 0, 2, 1))  # 2, an update
    assert shard.needed_from() == 0
    coordinator.hold = True
    coordinator.manager.initialize(KEY, 0, 0, lambda _: None)  # 3
    assert shard.needed_from() == 0  # not committed
    coordinator.hold = False
    coordinator.commit()
    assert shard.needed_from() == 1
    coordinator.ask("delete", key=other)  # 4
    assert shard.needed_from() == 3
    coordinator.ask("delete")  # 5
    assert shard.needed_from() == 5
    assert coordinator.again().shard.needed_from() == 5


def test_what_lies_before_may_go() -> None:
    coordinator = Coordinator(updates_per_snapshot=2)
    other = ShareKey("h", TOPIC_ID, 1)
    for key in (KEY, other):
        coordinator.ask("initialize", 1, 0, key=key)
        for offset in range(6):
            coordinator.write((offset, offset, 2, 1), state_epoch=1, key=key)
    before = coordinator.states()
    needed = coordinator.shard.needed_from()
    log = coordinator.topic.logs[0]
    assert 0 < needed < len(log)
    coordinator.topic.logs[0] = log[needed:]
    coordinator.topic.starts[0] = needed
    after = coordinator.again().states()
    for key in (KEY, other):
        assert after[key].batches == before[key].batches == (StateBatch(0, 5, 2, 1),)


def test_cold_snapshots_are_repeated_until_all_were() -> None:
    coordinator = Coordinator(updates_per_snapshot=500)
    other = ShareKey("h", TOPIC_ID, 1)
    coordinator.ask("initialize", 0, 3)
    coordinator.write((3, 4, 2, 1), start=3)
    coordinator.time.advance(999)
    coordinator.ask("initialize", 0, 0, key=other)
    assert coordinator.shard.cold(1000) == []
    coordinator.time.advance(1)
    assert coordinator.shard.cold(1000) == [KEY]
    coordinator.manager.repeat_cold_snapshots()
    coordinator.commit()
    state = coordinator.shard.state(KEY)
    assert (state.snapshot_epoch, state.start_offset, state.batches) == (1, 3, (StateBatch(3, 4, 2, 1),))
    assert state.write_ms - state.create_ms == 1000
    assert "".join(kinds(coordinator)) == "suss"
    coordinator.time.advance(1000)
    assert set(coordinator.shard.cold(1000)) == {KEY, other}
    coordinator.manager.repeat_cold_snapshots()
    coordinator.commit()
    coordinator.time.advance(5000)
    assert coordinator.shard.cold(1000) == []  # all were repeated: nothing has to be done for the log


def test_records_of_its_own_come_in_batches_of_bounded_size() -> None:
    coordinator = Coordinator()
    long = "x" * 30_000
    keys = [ShareKey(f"{long}{number}", TOPIC_ID, 0) for number in range(20)]
    for key in keys:
        coordinator.ask("initialize", 0, 0, key=key)
    coordinator.time.advance(1000)
    before = len(coordinator.topic.logs[0])
    coordinator.manager.repeat_cold_snapshots()
    coordinator.commit()
    batches = coordinator.topic.logs[0][before:]
    assert [len(list(records(batch))) for batch in batches] == [9, 9, 2]
    assert max(map(len, batches)) < BYTES_AT_ONCE + 2 * len(long)


def test_unknown_records_are_passed_over_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = Coordinator()
    unknown = [
        CoordinatorRecord(b"\0\7key", b"\0\0"),
        CoordinatorRecord(b"\0\7yek", b"\0\0"),
        CoordinatorRecord(b"\0\1\0\1g" + TOPIC_ID + bytes(4), None),
        CoordinatorRecord(b"\0\0\0\1g" + TOPIC_ID + bytes(4), b"\0\x09"),
    ]
    with caplog.at_level(logging.WARNING):
        coordinator.runtime.write(0, lambda _: Result(unknown, None), lambda *_: None)
        coordinator.commit()
    assert coordinator.states() == {}
    assert len(caplog.records) == 3


operations = st.one_of(
    st.tuples(st.just("initialize"), st.integers(0, 3), st.integers(-1, 9)),
    st.tuples(st.just("read"), st.integers(0, 3)),
    st.tuples(st.just("delete")),
    st.tuples(
        st.just("write"),
        st.lists(
            st.builds(
                lambda first, length, state, count: (first, first + length, state, count),
                st.integers(0, 9),
                st.integers(0, 4),
                st.sampled_from((0, 2, 4)),
                st.integers(1, 3),
            ),
            max_size=3,
        ),
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(-1, 9),
        st.integers(-1, 5),
    ),
    st.tuples(st.just("cold")),
    st.tuples(st.just("fail")),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(operations, st.integers(0, 1)), max_size=25), st.integers(0, 3))
def test_live_state_is_what_a_load_of_the_log_makes(
    steps: list[tuple[tuple, int]], updates_per_snapshot: int
) -> None:
    coordinator = Coordinator(updates_per_snapshot=updates_per_snapshot)
    for (what, *arguments), partition in steps:
        key = ShareKey("g", TOPIC_ID, partition)
        coordinator.time.advance(400)
        if what == "write":
            batches, leader_epoch, state_epoch, start, complete = arguments
            coordinator.write(
                *batches,
                leader_epoch=leader_epoch,
                state_epoch=state_epoch,
                start=start,
                complete=complete,
                key=key,
            )
        elif what == "cold":
            coordinator.manager.repeat_cold_snapshots()
            coordinator.commit()
        elif what == "fail":
            coordinator.hold = True
            coordinator.manager.initialize(key, 3, 1, lambda _: None)
            if coordinator.topic.undecided:
                coordinator.topic.fail(E.NOT_LEADER_OR_FOLLOWER)
            coordinator.hold = False
        else:
            coordinator.ask(what, *arguments, key=key)
    loaded = coordinator.again()
    assert loaded.states() == coordinator.states()
    assert loaded.shard.needed_from() == coordinator.shard.needed_from()
