"""A transactional id as a value."""

from __future__ import annotations

import pytest

from coordinator.transaction.state import Transaction, TxnState

LEGAL = {
    TxnState.EMPTY: {TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT},
    TxnState.ONGOING: {
        TxnState.ONGOING,
        TxnState.EMPTY,
        TxnState.COMPLETE_COMMIT,
        TxnState.COMPLETE_ABORT,
    },
    TxnState.PREPARE_COMMIT: {TxnState.ONGOING},
    TxnState.PREPARE_ABORT: {
        TxnState.ONGOING,
        TxnState.EMPTY,
        TxnState.COMPLETE_COMMIT,
        TxnState.COMPLETE_ABORT,
    },
    TxnState.COMPLETE_COMMIT: {TxnState.PREPARE_COMMIT},
    TxnState.COMPLETE_ABORT: {TxnState.PREPARE_ABORT},
}
WRITTEN = list(LEGAL)


@pytest.mark.parametrize("before", WRITTEN)
@pytest.mark.parametrize("after", WRITTEN)
def test_only_legal_steps_are_made(before: TxnState, after: TxnState) -> None:
    txn = Transaction(1, state=before)
    if before in LEGAL[after]:
        moved = txn.moved(after, 5, epoch=3)
        assert (moved.state, moved.update_ms, moved.epoch, moved.producer_id) == (after, 5, 3, 1)
    else:
        with pytest.raises(AssertionError):
            txn.moved(after, 5)


def test_names_are_kafkas() -> None:
    assert [state.title for state in TxnState] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


@pytest.mark.parametrize(("epoch", "exhausted"), [(0, False), (32765, False), (32766, True), (32767, True)])
def test_the_last_epochs(epoch: int, exhausted: bool) -> None:
    assert Transaction(1, epoch).is_exhausted is exhausted
