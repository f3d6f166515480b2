"""The rules of transactions, cell by cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.transaction.state import Transaction, TxnState
from coordinator.transaction.transitions import (
    Known,
    Need,
    add_partitions,
    completed,
    end_plain,
    end_with_epoch,
    fenced,
    init_producer,
    is_expired,
    is_timed_out,
    verify,
)
from protocol.errors import ErrorCode as E

S = TxnState
PID, EPOCH, NOW = 7, 5, 1000
CELL = ("a", 0)
KNOWN = Known(PID, EPOCH)
LAST = 32766


def txn(state: TxnState = S.EMPTY, **fields: object) -> Transaction:
    partitions = frozenset() if state in (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT) else frozenset([CELL])
    known = {"epoch": EPOCH, "timeout_ms": 100, "state": state, "partitions": partitions, "start_ms": 10}
    return Transaction(PID, **{**known, **fields})  # type: ignore[arg-type]


# --- InitProducerId


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_init_between_transactions_raises_the_epoch(state: TxnState) -> None:
    after = init_producer(txn(state), None, 60, None, NOW)
    assert after == Transaction(PID, EPOCH + 1, 60, S.EMPTY, frozenset(), -1, NOW)


def test_init_of_a_new_id_begins_at_epoch_0() -> None:
    after = init_producer(Transaction(PID), None, 60, None, NOW)
    assert isinstance(after, Transaction)
    assert (after.producer_id, after.epoch, after.last_epoch) == (PID, 0, -1)


def test_init_with_the_epoch_that_is_known_raises_it_and_can_be_repeated() -> None:
    first = init_producer(txn(), KNOWN, 60, None, NOW)
    assert isinstance(first, Transaction)
    assert (first.epoch, first.last_epoch) == (EPOCH + 1, EPOCH)
    again = init_producer(first, KNOWN, 60, None, NOW + 1)
    assert isinstance(again, Transaction)
    assert (again.epoch, again.last_epoch) == (EPOCH + 1, EPOCH)
    assert init_producer(first, Known(PID, EPOCH - 1), 60, None, NOW) is E.PRODUCER_FENCED


def test_a_loaded_state_does_not_know_the_epoch_before() -> None:
    first = init_producer(txn(), KNOWN, 60, None, NOW)
    assert isinstance(first, Transaction)
    loaded = replace(first, last_epoch=-1)
    assert init_producer(loaded, KNOWN, 60, None, NOW) is E.PRODUCER_FENCED


def test_init_with_another_producer_id_is_fenced() -> None:
    assert init_producer(txn(), Known(PID + 1, EPOCH), 60, None, NOW) is E.PRODUCER_FENCED


def test_init_waits_for_what_is_open_or_decided() -> None:
    assert init_producer(txn(S.ONGOING), None, 60, None, NOW) is Need.ABORT
    assert (
        init_producer(txn(S.ONGOING), Known(PID, 1), 60, None, NOW) is Need.ABORT
    )  # the epoch is not looked at
    for state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
        assert init_producer(txn(state), None, 60, None, NOW) is E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("known", [None, Known(PID, LAST)])
def test_used_up_epochs_lead_to_a_new_producer_id(known: Known | None) -> None:
    spent = txn(epoch=LAST)
    assert init_producer(spent, known, 60, None, NOW) is Need.ID
    after = init_producer(spent, known, 60, 99, NOW)
    assert isinstance(after, Transaction)
    assert (after.producer_id, after.epoch, after.previous_id) == (99, 0, PID)
    again = init_producer(after, Known(PID, LAST), 60, 100, NOW)
    if known is None:
        assert again is E.PRODUCER_FENCED
    else:
        assert isinstance(again, Transaction)
        assert (again.producer_id, again.epoch) == (99, 0)  # the same answer as the first time


def test_the_epoch_for_fencing_is_never_handed_out() -> None:
    for version in (0, 1, 2):
        decided = fenced(txn(S.ONGOING, epoch=LAST), version, NOW)
        assert end_with_epoch(decided, Known(PID, LAST), False, 2, 99, NOW) is E.PRODUCER_FENCED
        aborted = completed(decided, NOW)
        assert aborted.epoch == LAST + 1
        assert init_producer(aborted, None, 60, None, NOW) is Need.ID
        assert init_producer(aborted, Known(PID, LAST), 60, 99, NOW) is E.PRODUCER_FENCED
        assert end_with_epoch(aborted, Known(PID, LAST), False, 2, 99, NOW) is E.PRODUCER_FENCED


# --- AddPartitionsToTxn


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_the_first_partitions_begin_a_transaction(state: TxnState) -> None:
    after = add_partitions(txn(state), KNOWN, [CELL, ("b", 1)], 2, NOW)
    assert isinstance(after, Transaction)
    assert (after.state, after.start_ms, after.version) == (S.ONGOING, NOW, 2)
    assert after.partitions == {CELL, ("b", 1)}


def test_more_partitions_keep_the_start() -> None:
    after = add_partitions(txn(S.ONGOING), KNOWN, [("b", 1)], 0, NOW)
    assert isinstance(after, Transaction)
    assert (after.start_ms, after.update_ms, after.partitions) == (10, NOW, {CELL, ("b", 1)})


def test_partitions_that_are_known_change_nothing() -> None:
    open_one = txn(S.ONGOING)
    assert add_partitions(open_one, KNOWN, [CELL], 0, NOW) is open_one


@pytest.mark.parametrize(
    ("state", "known", "error"),
    [
        (S.EMPTY, Known(PID + 1, EPOCH), E.INVALID_PRODUCER_ID_MAPPING),
        (S.EMPTY, Known(PID, EPOCH - 1), E.PRODUCER_FENCED),
        (S.ONGOING, Known(PID, EPOCH + 1), E.PRODUCER_FENCED),
        (S.PREPARE_COMMIT, Known(PID, EPOCH - 1), E.PRODUCER_FENCED),
        (S.PREPARE_COMMIT, KNOWN, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, KNOWN, E.CONCURRENT_TRANSACTIONS),
    ],
)
def test_who_may_not_add(state: TxnState, known: Known, error: E) -> None:
    assert add_partitions(txn(state), known, [CELL], 0, NOW) is error
    assert verify(txn(state), known, CELL) is error


def test_verification_finds_what_was_added() -> None:
    assert verify(txn(S.ONGOING), KNOWN, CELL) is E.NONE
    assert verify(txn(S.ONGOING), KNOWN, ("a", 1)) is E.TRANSACTION_ABORTABLE
    assert verify(txn(S.COMPLETE_COMMIT), KNOWN, CELL) is E.TRANSACTION_ABORTABLE


# --- EndTxn

GONE_ON = "moved"
DONE = "the same"
PLAIN = {
    S.ONGOING: (S.PREPARE_COMMIT, S.PREPARE_ABORT),
    S.PREPARE_COMMIT: (E.CONCURRENT_TRANSACTIONS, E.INVALID_TXN_STATE),
    S.PREPARE_ABORT: (E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS),
    S.COMPLETE_COMMIT: (DONE, E.INVALID_TXN_STATE),
    S.COMPLETE_ABORT: (E.INVALID_TXN_STATE, DONE),
    S.EMPTY: (E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
}


@pytest.mark.parametrize("state", PLAIN)
@pytest.mark.parametrize("commit", [True, False])
def test_end_of_a_transaction_whose_epoch_stays(state: TxnState, commit: bool) -> None:
    before = txn(state)
    expected = PLAIN[state][0 if commit else 1]
    after = end_plain(before, KNOWN, commit, NOW)
    if isinstance(expected, TxnState):
        assert after == replace(before, state=expected, update_ms=NOW)
    elif expected == DONE:
        assert after is before
    else:
        assert after is expected


def test_end_by_somebody_else() -> None:
    assert end_plain(txn(S.ONGOING), Known(8, EPOCH), True, NOW) is E.INVALID_PRODUCER_ID_MAPPING
    assert end_plain(txn(S.ONGOING), Known(PID, EPOCH + 1), True, NOW) is E.PRODUCER_FENCED
    assert end_plain(txn(S.ONGOING), Known(PID, EPOCH - 1), True, NOW) is E.PRODUCER_FENCED


OWN_EPOCH = {  # abort now, abort again, commit now, commit again
    S.ONGOING: (S.PREPARE_ABORT, E.PRODUCER_FENCED, S.PREPARE_COMMIT, E.PRODUCER_FENCED),
    S.PREPARE_COMMIT: (
        E.PRODUCER_FENCED,
        E.INVALID_TXN_STATE,
        E.PRODUCER_FENCED,
        E.CONCURRENT_TRANSACTIONS,
    ),
    S.PREPARE_ABORT: (
        E.PRODUCER_FENCED,
        E.CONCURRENT_TRANSACTIONS,
        E.PRODUCER_FENCED,
        E.INVALID_TXN_STATE,
    ),
    S.EMPTY: (S.PREPARE_ABORT, E.PRODUCER_FENCED, E.INVALID_TXN_STATE, E.PRODUCER_FENCED),
    S.COMPLETE_ABORT: (S.PREPARE_ABORT, DONE, E.INVALID_TXN_STATE, E.INVALID_TXN_STATE),
    S.COMPLETE_COMMIT: (S.PREPARE_ABORT, E.INVALID_TXN_STATE, E.INVALID_TXN_STATE, DONE),
}


@pytest.mark.parametrize("state", OWN_EPOCH)
@pytest.mark.parametrize(
    ("column", "commit", "epoch"),
    [(0, False, EPOCH), (1, False, EPOCH - 1), (2, True, EPOCH), (3, True, EPOCH - 1)],
)
def test_end_of_a_transaction_with_an_epoch_of_its_own(
    state: TxnState, column: int, commit: bool, epoch: int
) -> None:
    before = txn(state)
    expected = OWN_EPOCH[state][column]
    after = end_with_epoch(before, Known(PID, epoch), commit, 2, None, NOW)
    if isinstance(expected, TxnState):
        start_ms = 10 if state is S.ONGOING else NOW
        assert after == replace(
            before,
            state=expected,
            update_ms=NOW,
            epoch=EPOCH + 1,
            last_epoch=EPOCH,
            start_ms=start_ms,
            version=2,
        )
    elif expected == DONE:
        assert after is before
    else:
        assert after is expected


def test_the_last_epoch_of_a_producer_id_is_followed_by_a_new_id() -> None:
    spent = txn(S.ONGOING, epoch=LAST)
    assert end_with_epoch(spent, Known(PID, LAST), True, 2, None, NOW) is Need.ID
    decided = end_with_epoch(spent, Known(PID, LAST), True, 2, 99, NOW)
    assert isinstance(decided, Transaction)
    assert (decided.producer_id, decided.epoch, decided.next_id) == (PID, LAST + 1, 99)
    done = completed(decided, NOW)
    assert (done.producer_id, done.epoch, done.previous_id, done.next_id) == (99, 0, PID, -1)
    assert end_with_epoch(done, Known(PID, LAST), True, 2, None, NOW) is done  # repeated
    assert end_with_epoch(done, Known(PID, LAST), False, 2, None, NOW) is E.INVALID_TXN_STATE


# --- the coordinator's own


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_abort_by_the_coordinator_raises_the_epoch_once(version: int) -> None:
    after = fenced(txn(S.ONGOING, version=2), version, NOW)
    assert (after.state, after.epoch, after.version) == (S.PREPARE_ABORT, EPOCH + 1, version)
    assert completed(after, NOW).epoch == EPOCH + 1


def test_from_version_2_on_a_producer_goes_on_after_an_abort_by_the_coordinator() -> None:
    aborted = completed(fenced(txn(S.ONGOING), 2, NOW), NOW)
    assert end_with_epoch(aborted, KNOWN, False, 2, None, NOW) is aborted  # which names the next epoch
    assert end_with_epoch(aborted, KNOWN, True, 2, None, NOW) is E.INVALID_TXN_STATE
    after = init_producer(aborted, KNOWN, 60, None, NOW)
    assert isinstance(after, Transaction)
    assert (after.state, after.epoch) == (S.EMPTY, EPOCH + 1)


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_a_producer_is_fenced_by_an_abort_of_the_coordinator(version: int) -> None:
    aborted = completed(fenced(txn(S.ONGOING), version, NOW), NOW)
    assert end_plain(aborted, KNOWN, False, NOW) is E.PRODUCER_FENCED
    assert init_producer(aborted, KNOWN, 60, None, NOW) is E.PRODUCER_FENCED


@pytest.mark.parametrize(
    ("before", "after"), [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)]
)
def test_completion_lets_go_of_the_partitions(before: TxnState, after: TxnState) -> None:
    assert completed(txn(before), NOW) == replace(
        txn(before), state=after, partitions=frozenset(), update_ms=NOW
    )


def test_time_is_over_after_the_time_out_and_not_before() -> None:
    assert not is_timed_out(txn(S.ONGOING), 110)
    assert is_timed_out(txn(S.ONGOING), 111)
    assert not is_timed_out(txn(S.PREPARE_ABORT), 10_000)
    assert not is_timed_out(txn(), 10_000)


def test_only_ids_at_rest_expire() -> None:
    assert is_expired(txn(update_ms=NOW), NOW + 50, 50)
    assert not is_expired(txn(update_ms=NOW), NOW + 49, 50)
    assert not is_expired(txn(S.ONGOING, update_ms=NOW), NOW + 1000, 50)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["init", "add", "commit", "abort", "commit 2", "abort 2", "fence", "fence 2", "complete"]
            ),
            st.integers(-1, 1),
        ),
        max_size=40,
    ),
    st.sampled_from([-1, LAST - 3]),
)
def test_epochs_never_fall_and_a_decision_stands_until_it_is_complete(
    steps: list[tuple[str, int]], epoch: int
) -> None:
    """Whatever clients ask for, with the epoch that is known or one beside it."""
    here, fresh = Transaction(PID, epoch), PID
    for what, beside in steps:
        known = Known(here.producer_id, here.epoch + beside)
        fresh += 1
        after: object = here
        match what:
            case "init":
                after = init_producer(here, known if beside else None, 60, fresh, NOW)
            case "add":
                after = add_partitions(here, known, [CELL], 0, NOW)
            case "commit" | "abort":
                after = end_plain(here, known, what == "commit", NOW)
            case "commit 2" | "abort 2":
                after = end_with_epoch(here, known, what == "commit 2", 2, fresh, NOW)
            case "fence" | "fence 2":
                after = fenced(here, 2 if "2" in what else 1, NOW) if here.state is S.ONGOING else here
            case _:
                after = completed(here, NOW) if here.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT) else here
        if not isinstance(after, Transaction):
            continue
        if here.state in (S.PREPARE_COMMIT, S.PREPARE_ABORT) and after is not here:
            assert what == "complete"
        if after.producer_id == here.producer_id:
            assert after.epoch >= here.epoch
        asked_by_client = what not in ("fence", "fence 2", "complete")
        assert after.epoch <= LAST or not asked_by_client or after.next_id >= 0  # what a client is told
        assert after.state is not S.ONGOING or after.partitions
        here = after


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
@pytest.mark.parametrize("commit", [True, False])
def test_the_last_epoch_is_no_clients(state: TxnState, commit: bool) -> None:
    """An abort by the coordinator has left it; whoever goes on with it could never be fenced."""
    known = Known(PID, LAST + 1)
    used_up = txn(state, epoch=LAST + 1)
    assert add_partitions(used_up, known, [CELL], 2, NOW) is E.PRODUCER_FENCED
    assert end_with_epoch(used_up, known, commit, 2, 99, NOW) is E.PRODUCER_FENCED


@pytest.mark.parametrize("version", [0, 2])
def test_a_fence_never_goes_beyond_the_last_epoch(version: int) -> None:
    """Records may say what no coordinator wrote."""
    assert fenced(txn(S.ONGOING, epoch=LAST), version, NOW).epoch == LAST + 1
    assert fenced(txn(S.ONGOING, epoch=LAST + 1), version, NOW).epoch == LAST + 1
