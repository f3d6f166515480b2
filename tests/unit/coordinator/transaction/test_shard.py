"""Transactional ids over a log: what is pending, failed appends, loads."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.transaction.records import read_value
from coordinator.transaction.shard import TOLD_AT_ONCE, TransactionShard
from coordinator.transaction.state import Transaction, TxnState
from coordinator.transaction.transitions import Known
from protocol.errors import ErrorCode as E
from protocol.records.batch import records
from runtime.pieces import at_once
from tests.unit.coordinator.transaction.coordinator import EXPIRATION_MS, ID, TIMEOUT_MS, Coordinator

CELL = ("a", 0)


def all_of(shard: TransactionShard) -> dict[str, Transaction | None]:
    return {name: shard.get(name) for name in shard.ids()}


def written(coordinator: Coordinator) -> list[str]:
    """The states in the log, one after the other; a tombstone is a dash."""
    found = []
    for batch in coordinator.topic.logs.get(0, []):
        for record in records(batch):
            txn = None if record.value is None else read_value(record.value)
            found.append("-" if txn is None else txn.state.title)
    return found


def test_a_transaction_from_its_first_to_its_last_record() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    assert coordinator.end(known, commit=True) == (E.NONE, known)
    [(partition, name, decided)] = coordinator.told
    assert (partition, name, decided) == (0, ID, coordinator.txn)
    coordinator.complete()
    assert written(coordinator) == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]


def test_while_a_change_is_on_its_way_everybody_is_to_come_again() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    coordinator.hold = True
    waiting: list[E] = []
    coordinator.manager.add_partitions(ID, known, [("b", 1)], 0, lambda error, _: waiting.append(error))
    assert coordinator.ask("end", ID, known, True, 0, None)[0] is E.CONCURRENT_TRANSACTIONS
    assert coordinator.ask("add_partitions", ID, known, [("c", 1)], 0)[0] is E.CONCURRENT_TRANSACTIONS
    assert coordinator.ask("init_producer", ID, None, TIMEOUT_MS, None)[0] is E.CONCURRENT_TRANSACTIONS
    assert coordinator.ask("add_partitions", ID, Known(1, 1), [], 0)[0] is E.CONCURRENT_TRANSACTIONS
    assert coordinator.manager.verify(ID, known, [CELL, ("b", 1)]) == [E.NONE, E.TRANSACTION_ABORTABLE]
    assert coordinator.txn.partitions == {CELL}
    assert waiting == []
    coordinator.hold = False
    coordinator.commit()
    assert waiting == [E.NONE]
    assert coordinator.txn.partitions == {CELL, ("b", 1)}


def test_a_decision_that_does_not_get_into_the_log_leaves_the_transaction_open() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    before = coordinator.txn
    coordinator.hold = True
    answers: list[E] = []
    coordinator.manager.end(ID, known, True, 0, None, lambda error, _: answers.append(error))
    coordinator.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert answers == [E.COORDINATOR_NOT_AVAILABLE]
    assert (coordinator.txn, coordinator.told) == (before, [])
    coordinator.hold = False
    assert coordinator.end(known, commit=True)[0] is E.NONE


def test_an_append_that_is_refused_leaves_nothing_behind() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    coordinator.topic.refuse = E.NOT_ENOUGH_REPLICAS
    assert coordinator.end(known, commit=True)[0] is E.COORDINATOR_NOT_AVAILABLE
    assert not coordinator.shard._coming
    coordinator.topic.refuse = None
    assert coordinator.end(known, commit=False)[0] is E.NONE
    assert coordinator.txn.state is TxnState.PREPARE_ABORT


def test_a_fence_that_fails_twice_raises_the_epoch_once() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    for _ in range(2):
        coordinator.hold = True
        answers: list[E] = []
        coordinator.manager.fence(ID, lambda error, _, answers=answers: answers.append(error))
        coordinator.topic.fail(E.NOT_ENOUGH_REPLICAS)
        assert answers == [E.COORDINATOR_NOT_AVAILABLE]
    coordinator.hold = False
    assert coordinator.ask("fence", ID) == (E.NONE, True)
    assert coordinator.txn.epoch == known.epoch + 1


def test_an_unknown_id() -> None:
    coordinator = Coordinator()
    known = Known(1, 0)
    assert coordinator.ask("add_partitions", ID, known, [CELL], 0)[0] is E.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.end(known, commit=True)[0] is E.INVALID_PRODUCER_ID_MAPPING
    assert coordinator.ask("fence", ID) == (E.NONE, False)
    assert coordinator.init(known)[0] is E.NONE  # whatever it says it had


def test_completion_of_another_decision_changes_nothing() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    coordinator.end(known, commit=True)
    stale = replace(coordinator.txn, epoch=coordinator.txn.epoch + 1)
    assert coordinator.ask("complete", 0, ID, stale) == (E.NONE, False)
    assert coordinator.txn.state is TxnState.PREPARE_COMMIT
    coordinator.complete()
    assert coordinator.ask("complete", 0, ID, coordinator.told[0][2]) == (E.NONE, False)


@pytest.mark.parametrize("commit", [True, False])
def test_a_new_coordinator_carries_out_what_was_decided(commit: bool) -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL, ("b", 3))
    coordinator.end(known, commit)
    again = coordinator.again()
    [(partition, name, decided)] = again.told
    state = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
    assert (partition, name, decided.state, decided.partitions) == (0, ID, state, {CELL, ("b", 3)})
    again.complete()
    assert again.again().told == []


def test_many_decisions_that_are_found_are_told_some_at_a_time() -> None:
    coordinator = Coordinator()
    names = [f"t{number}" for number in range(2 * TOLD_AT_ONCE + 1)]
    for name in names:
        _, producer = coordinator.init(name=name)
        assert coordinator.ask("add_partitions", name, Known(*producer), [CELL], 0)[0] is E.NONE
        assert coordinator.ask("end", name, Known(*producer), True, 0, None)[0] is E.NONE
    partition, name, txn = coordinator.told[0]
    coordinator.ask("complete", partition, name, txn)
    again = coordinator.again()
    assert [name for _, name, _ in again.told] == names[1 : TOLD_AT_ONCE + 1]
    again.time.advance(1)
    assert len(again.told) == 2 * TOLD_AT_ONCE
    gone = coordinator.again()
    gone.runtime.unload(0)
    gone.time.advance(10)
    assert len(gone.told) == TOLD_AT_ONCE  # the others are somebody else's to find


def test_who_carries_out_decisions_is_told_when_the_partition_goes() -> None:
    coordinator = Coordinator()
    coordinator.end(coordinator.begun(CELL), commit=True)
    assert coordinator.gone == []
    shard = coordinator.shard
    coordinator.runtime.unload(0, 2)
    assert (coordinator.gone, shard.ids()) == ([0], [])
    coordinator.runtime.load(0, 3)
    coordinator.tasks.run()
    assert [name for _, name, _ in coordinator.told] == [ID, ID]  # the decision is found again


def test_an_open_transaction_goes_on_at_a_new_coordinator_and_its_time_runs_from_its_start() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    coordinator.time.advance(TIMEOUT_MS - 5)
    again = coordinator.again()
    assert again.ask("add_partitions", ID, known, [("b", 1)], 0)[0] is E.NONE
    at_once(again.manager.abort_timed_out(0))
    assert again.told == []
    again.time.advance(6)
    at_once(again.manager.abort_timed_out(0))
    again.commit()
    assert again.txn.state is TxnState.PREPARE_ABORT
    assert again.ask("end", ID, known, True, 0, None)[0] is E.PRODUCER_FENCED


def test_a_transaction_with_a_change_under_way_is_not_taken_to_be_too_long() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    coordinator.time.advance(TIMEOUT_MS + 1)
    coordinator.hold = True
    coordinator.manager.add_partitions(ID, known, [("b", 1)], 0, lambda *_: None)
    assert coordinator.shard.timed_out([ID]) == []
    fenced: list[tuple[E, bool | None]] = []
    coordinator.manager.fence(ID, lambda error, response: fenced.append((error, response)))
    coordinator.hold = False
    coordinator.commit()
    assert fenced == [(E.NONE, False)]
    assert coordinator.shard.timed_out([ID]) == [ID]
    assert coordinator.txn.partitions == {CELL, ("b", 1)}


def test_a_repeated_request_for_an_id_is_not_known_to_a_new_coordinator() -> None:
    coordinator = Coordinator()
    _, first = coordinator.init()
    _, second = coordinator.init(Known(*first))
    assert coordinator.init(Known(*first)) == (E.NONE, second)
    assert coordinator.again().init(Known(*first))[0] is E.PRODUCER_FENCED


def test_ids_that_nobody_uses_are_forgotten_and_others_are_not() -> None:
    coordinator = Coordinator()
    coordinator.begun(CELL)  # open: stays
    assert coordinator.init(name="idle")[0] is E.NONE
    coordinator.time.advance(EXPIRATION_MS - 1)
    at_once(coordinator.manager.forget_expired(0))
    coordinator.commit()
    assert coordinator.shard.get("idle") is not None
    coordinator.time.advance(1)
    coordinator.hold = True
    coordinator.manager.init_producer("idle", None, TIMEOUT_MS, None, lambda *_: None)
    at_once(coordinator.manager.forget_expired(0))  # skips what is pending
    coordinator.hold = False
    coordinator.commit()
    assert coordinator.shard.get("idle") is not None
    coordinator.time.advance(EXPIRATION_MS)
    at_once(coordinator.manager.forget_expired(0))
    coordinator.commit()
    assert coordinator.shard.get("idle") is None
    assert coordinator.again().shard.get("idle") is None
    assert coordinator.txn.state is TxnState.ONGOING


def test_the_version_of_values_follows_the_feature() -> None:
    coordinator = Coordinator()
    coordinator.version = 0
    coordinator.init()
    coordinator.version = 1
    coordinator.init()
    versions = []
    for batch in coordinator.topic.logs[0]:
        for record in records(batch):
            assert record.value is not None
            versions.append(record.value[:2])
    assert versions == [b"\0\0", b"\0\1"]


def test_records_that_are_not_known_are_passed_over_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = Coordinator()
    with caplog.at_level(logging.WARNING, "coordinator.transaction.shard"):
        for _ in range(2):
            coordinator.shard.replay(b"\0\7x", b"", 0, -1)
            coordinator.shard.replay(b"\0\0\0\1t", b"\0\5", 0, -1)
    assert len(caplog.records) == 2
    assert len(coordinator.shard) == 0


STEPS = ("init", "add", "commit", "abort", "commit 2", "abort 2", "fence", "complete", "expire")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STEPS), st.sampled_from("xy"), st.sampled_from(["go", "fail", "refuse"])),
        max_size=30,
    )
)
def test_what_a_new_coordinator_loads_is_what_the_old_one_held(steps: list[tuple[str, str, str]]) -> None:
    """Whatever was asked, and whichever appends failed: the two know the same of every id."""
    coordinator = Coordinator()
    for what, name, fate in steps:
        txn = coordinator.shard.get(name) or Transaction(0)
        known = Known(txn.producer_id, txn.epoch)
        coordinator.topic.refuse = E.NOT_ENOUGH_REPLICAS if fate == "refuse" else None
        coordinator.hold = fate == "fail"
        manager, ignore = coordinator.manager, lambda *_: None
        match what:
            case "init":
                manager.init_producer(name, None, TIMEOUT_MS, 5, ignore)
            case "add":
                manager.add_partitions(name, known, [CELL], 0, ignore)
            case "commit" | "abort":
                manager.end(name, known, what == "commit", 0, 6, ignore)
            case "commit 2" | "abort 2":
                manager.end(name, known, what == "commit 2", 2, 6, ignore)
            case "fence":
                manager.fence(name, ignore)
            case "complete":
                manager.complete(0, name, txn, ignore)
            case _:
                coordinator.time.advance(EXPIRATION_MS)
                at_once(manager.forget_expired(0))
        if coordinator.topic.undecided and fate == "fail":
            coordinator.topic.fail(E.NOT_ENOUGH_REPLICAS)
        coordinator.hold = False
        coordinator.commit()
    held = {name: txn and replace(txn, last_epoch=-1) for name, txn in all_of(coordinator.shard).items()}
    assert all_of(coordinator.again().shard) == held


def test_a_record_is_the_whole_state() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL, version=2)
    coordinator.end(known, commit=True, version=2)
    [*_, record] = records(coordinator.topic.logs[0][-1])
    assert record.value is not None
    assert read_value(record.value) == replace(coordinator.txn, last_epoch=-1)
