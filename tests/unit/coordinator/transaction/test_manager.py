"""The transaction coordinator as handlers see it."""

from __future__ import annotations

import logging

import pytest

from coordinator.result import CoordinatorError
from coordinator.transaction.manager import ENDED_AT_ONCE
from coordinator.transaction.state import TxnState
from coordinator.transaction.transitions import Known, Need
from protocol.errors import ErrorCode as E
from runtime.pieces import AT_ONCE, at_once
from tests.unit.coordinator.transaction.coordinator import ID, TIMEOUT_MS, Coordinator

CELL = ("a", 0)


def test_a_new_id_needs_a_producer_id_first() -> None:
    coordinator = Coordinator()
    assert coordinator.ask("init_producer", ID, None, TIMEOUT_MS, None) == (E.NONE, Need.ID)
    assert coordinator.ask("init_producer", ID, None, TIMEOUT_MS, 5) == (E.NONE, (5, 0))
    assert coordinator.ask("init_producer", ID, None, TIMEOUT_MS, None) == (E.NONE, (5, 1))


def test_a_producer_that_comes_back_has_its_open_transaction_aborted() -> None:
    """The epoch is two higher then: one for the fence, one for the new instance."""
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    assert coordinator.init()[0] is E.CONCURRENT_TRANSACTIONS
    [(_, _, decided)] = coordinator.told
    assert (decided.state, decided.epoch) == (TxnState.PREPARE_ABORT, known.epoch + 1)
    assert coordinator.init()[0] is E.CONCURRENT_TRANSACTIONS  # until it is complete
    assert len(coordinator.told) == 1
    coordinator.complete()
    assert coordinator.init() == (E.NONE, (known.producer_id, known.epoch + 2))


def test_the_answer_of_a_decision_names_the_next_producer() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL, version=2)
    assert coordinator.end(known, True, 2) == (E.NONE, (known.producer_id, known.epoch + 1))
    coordinator.complete()
    assert coordinator.end(known, True, 2) == (E.NONE, (known.producer_id, known.epoch + 1))  # repeated
    assert len(coordinator.told) == 1


def test_a_decision_is_carried_out_even_if_its_log_took_long() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    coordinator.hold = True
    answers: list[E] = []
    coordinator.manager.end(ID, known, True, 0, None, lambda error, _: answers.append(error))
    coordinator.time.advance(60_000)
    assert answers == []
    coordinator.hold = False
    coordinator.commit()
    assert (answers, len(coordinator.told)) == ([E.NONE], 1)


def test_who_is_no_coordinator_says_so() -> None:
    coordinator = Coordinator()
    known = coordinator.begun(CELL)
    coordinator.runtime.unload(0)
    assert coordinator.end(known, True)[0] is E.NOT_COORDINATOR
    with pytest.raises(CoordinatorError) as refused:
        coordinator.manager.verify(ID, known, [CELL])
    assert refused.value.error is E.NOT_COORDINATOR
    at_once(coordinator.manager.abort_timed_out(0))  # finds nothing
    at_once(coordinator.manager.forget_expired(0))


def test_an_empty_id_is_none() -> None:
    coordinator = Coordinator()
    assert coordinator.ask("add_partitions", "", Known(1, 1), [CELL], 0)[0] is E.INVALID_REQUEST
    assert coordinator.end(Known(1, 1), True)[0] is E.INVALID_PRODUCER_ID_MAPPING
    for look in (
        coordinator.manager.describe,
        lambda name: coordinator.manager.verify(name, Known(1, 1), []),
    ):
        with pytest.raises(CoordinatorError) as refused:
            look("")
        assert refused.value.error is E.INVALID_REQUEST


def test_describe_and_list() -> None:
    coordinator = Coordinator()
    coordinator.begun(CELL)
    assert coordinator.manager.describe(ID) == coordinator.txn
    assert coordinator.manager.partitions(ID, coordinator.txn) == {CELL}
    coordinator.unmarked[ID] = []
    assert coordinator.manager.partitions(ID, coordinator.txn) == []
    with pytest.raises(CoordinatorError) as refused:
        coordinator.manager.describe("other")
    assert refused.value.error is E.TRANSACTIONAL_ID_NOT_FOUND
    coordinator.init(name="other")
    [shard] = coordinator.manager.shards()
    assert shard.ids() == [ID, "other"]


def test_work_by_the_clock_that_fails_is_told_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    coordinator = Coordinator()
    coordinator.begun(CELL)
    coordinator.time.advance(TIMEOUT_MS + 1)
    coordinator.topic.refuse = E.NOT_ENOUGH_REPLICAS
    with caplog.at_level(logging.WARNING, "coordinator.transaction.manager"):
        at_once(coordinator.manager.abort_timed_out(0))
    assert len(caplog.records) == 1
    coordinator.topic.refuse = None
    at_once(coordinator.manager.abort_timed_out(0))
    coordinator.commit()
    assert coordinator.txn.state is TxnState.PREPARE_ABORT


def test_transactions_that_are_late_together_are_aborted_some_at_a_time() -> None:
    coordinator = Coordinator()
    for number in range(ENDED_AT_ONCE * 2 + 10):
        _, producer = coordinator.init(name=f"t{number}")
        assert coordinator.ask("add_partitions", f"t{number}", Known(*producer), [CELL], 0)[0] is E.NONE
    coordinator.time.advance(TIMEOUT_MS + 1)
    told = []
    for _ in coordinator.manager.abort_timed_out(0):
        coordinator.commit()
        told.append(len(coordinator.told))
    assert told == [50, 100, 110, 110]


def test_work_by_the_clock_ends_where_its_partition_goes() -> None:
    coordinator = Coordinator()
    for number in range(AT_ONCE + 1):
        coordinator.init(name=f"t{number}")
    works = [coordinator.manager.abort_timed_out(0), coordinator.manager.forget_expired(0)]
    for work in works:
        next(work)
    coordinator.runtime.unload(0)
    assert [next(work, "over") for work in works] == ["over", "over"]
