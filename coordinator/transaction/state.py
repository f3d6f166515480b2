"""What is known of one transactional id, as a value: each change makes the next (KIP-98, KIP-360, KIP-890).

Epochs run from 0 to 32,766 for clients; 32,767 is kept for fencing and never handed out. `start_ms` is -1
while no transaction was ever begun.

Invariant: `replace` is called by `transitions` alone, through `moved`, which refuses a step that the table
below does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Final, TypeAlias

NO_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
LAST_EPOCH: Final = 0x7FFF
"""For fencing; the one before is the last that a client gets."""

TopicPartition: TypeAlias = tuple[str, int]


class TxnState(IntEnum):
    """The numbers are those of the log. DEAD and EPOCH_FENCE are never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """As tools show it."""
        return _TITLES[self]


_TITLES: Final = {
    TxnState.EMPTY: "Empty",
    TxnState.ONGOING: "Ongoing",
    TxnState.PREPARE_COMMIT: "PrepareCommit",
    TxnState.PREPARE_ABORT: "PrepareAbort",
    TxnState.COMPLETE_COMMIT: "CompleteCommit",
    TxnState.COMPLETE_ABORT: "CompleteAbort",
    TxnState.DEAD: "Dead",
    TxnState.EPOCH_FENCE: "PrepareEpochFence",
}
PREPARED: Final = (TxnState.PREPARE_COMMIT, TxnState.PREPARE_ABORT)
AT_REST: Final = (TxnState.EMPTY, TxnState.COMPLETE_COMMIT, TxnState.COMPLETE_ABORT)
"""Between transactions."""

_BEFORE: Final = {
    TxnState.EMPTY: AT_REST,
    TxnState.ONGOING: (TxnState.ONGOING, *AT_REST),
    TxnState.PREPARE_COMMIT: (TxnState.ONGOING,),
    TxnState.PREPARE_ABORT: (TxnState.ONGOING, *AT_REST),  # at rest with transactions of version 2 alone
    TxnState.COMPLETE_COMMIT: (TxnState.PREPARE_COMMIT,),
    TxnState.COMPLETE_ABORT: (TxnState.PREPARE_ABORT,),
}


@dataclass(frozen=True, slots=True)
class Transaction:
    """`previous_id` and `next_id` are producer ids around a change of it, when the epochs of one are used up.
    `last_epoch` is the epoch that the client had before its last one, for a request that is repeated; the
    log does not keep it. `version` is the one that the client spoke when it last changed anything: with 2 or
    more each transaction has an epoch of its own.
    """

    producer_id: int
    epoch: int = NO_EPOCH
    timeout_ms: int = 0
    state: TxnState = TxnState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    update_ms: int = NO_TIME
    previous_id: int = NO_ID
    next_id: int = NO_ID
    last_epoch: int = NO_EPOCH
    version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether no epoch is left for clients."""
        return self.epoch >= LAST_EPOCH - 1

    def moved(self, state: TxnState, now_ms: int, **changes: Any) -> Transaction:
        """The next value, in `state`."""
        assert self.state in _BEFORE[state], f"{self.state.title} does not lead to {state.title}"
        return replace(self, state=state, update_ms=now_ms, **changes)
