"""What one partition knows of one producer id.

The last five batches are kept so that a resend is answered with the offsets of the first time; a snapshot
holds only the last of them. Sequences count records, run to 2^31-1 and go on at 0.
"""

from __future__ import annotations

from typing import TypeAlias

from protocol.errors import ErrorCode
from storage.errors import AppendRefused

BATCHES_MAX = 5
SEQUENCE_MAX = 0x7FFFFFFF
NO_SEQUENCE = -1
NONE = -1

# first sequence, last sequence, last offset, offset delta (last - first), timestamp
CachedBatch: TypeAlias = tuple[int, int, int, int, int]


def advance(sequence: int, by: int) -> int:
    """`sequence` + `by` on the circle 0..2^31-1."""
    after = sequence + by
    return after if after <= SEQUENCE_MAX else after - SEQUENCE_MAX - 1


def retreat(sequence: int, by: int) -> int:
    """`sequence` - `by` on the same circle."""
    before = sequence - by
    return before if before >= 0 else before + SEQUENCE_MAX + 1


class ProducerEntry:
    """State of one producer. `batches` is ordered, oldest first, at most five."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "last_timestamp",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NONE,
        batches: list[CachedBatch] | None = None,
        coordinator_epoch: int = NONE,
        last_timestamp: int = NONE,
        current_txn_first_offset: int = NONE,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.batches = batches if batches is not None else []
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset

    def copy(self) -> ProducerEntry:
        return ProducerEntry(
            self.producer_id,
            self.epoch,
            self.batches.copy(),
            self.coordinator_epoch,
            self.last_timestamp,
            self.current_txn_first_offset,
        )

    @property
    def last_sequence(self) -> int:
        return self.batches[-1][1] if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1][2] if self.batches else NONE

    def find(self, epoch: int, first_sequence: int, delta: int) -> CachedBatch | None:
        """The batch of these sequences, if it is one of the last ones."""
        if epoch == self.epoch:
            last_sequence = advance(first_sequence, delta)
            for batch in self.batches:
                if batch[0] == first_sequence and batch[1] == last_sequence:
                    return batch
        return None

    def add(
        self, epoch: int, first_sequence: int, last_sequence: int, last_offset: int, delta: int, ts: int
    ) -> None:
        """Take a batch over; another epoch forgets the batches of the old one."""
        batches = self.batches
        if epoch != self.epoch:
            self.epoch = epoch
            batches.clear()
        elif len(batches) == BATCHES_MAX:
            del batches[0]
        batches.append((first_sequence, last_sequence, last_offset, delta, ts))
        self.last_timestamp = ts


def check_sequence(
    entry: ProducerEntry, epoch: int, first_sequence: int, last_sequence: int, check_order: bool
) -> CachedBatch | None:
    """Decide about a batch of a known producer: None to append it, a cached batch when it was here before.

    `check_order` is False for batches of the coordinator, whose sequences mean nothing. Raises AppendRefused
    with INVALID_PRODUCER_EPOCH or OUT_OF_ORDER_SEQUENCE_NUMBER.
    """
    known = entry.epoch
    if epoch < known:
        raise AppendRefused(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {entry.producer_id} is {epoch}, "
            f"which is smaller than the last seen epoch {known}",
        )
    if not check_order:
        return None
    batches = entry.batches
    if known == NONE:
        wanted = first_sequence
    elif epoch == known and batches:
        last = batches[-1][1]
        wanted = last + 1 if last != SEQUENCE_MAX else 0
    else:
        wanted = 0
    if first_sequence == wanted:
        return None
    if epoch == known:
        for batch in batches:
            if batch[0] == first_sequence and batch[1] == last_sequence:
                return batch
    raise AppendRefused(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Out of order sequence number for producer {entry.producer_id} in epoch {epoch}: "
        f"{first_sequence} (incoming), {wanted} expected",
    )
