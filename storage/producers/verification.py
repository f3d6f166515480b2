"""Proof that a transaction's first batch on a partition is known to its coordinator (KIP-890).

Before the first batch of a transaction is appended, the coordinator is asked whether the partition belongs to
it. The guard made before the question must still be the producer's when the batch arrives: a marker, or any
transactional batch, has replaced it meanwhile otherwise, and the answer was about a transaction that is over.
With it the lowest sequence that was tried is kept, so that a later batch cannot overtake one that waits.
"""

from __future__ import annotations

VERIFICATIONS_MAX = 100_000  # any client may ask: the one that waits for longest goes


class VerificationGuard:
    """A token; only the very same one is accepted."""

    __slots__ = ()


class Verification:
    """The producer whose transaction is being verified.

    `lowest_sequence` of those that were tried; nothing may overtake it. `supports_epoch_bump`: its
    transactions are of version 2, each with an epoch, and so a first sequence, of its own.
    """

    __slots__ = ("epoch", "guard", "lowest_sequence", "since_ms", "supports_epoch_bump")

    def __init__(self, since_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.since_ms = since_ms
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump

    def tried(self, sequence: int, epoch: int) -> None:
        """Another batch of the producer asks; a new epoch begins its sequences anew."""
        if self.supports_epoch_bump and epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


class Verifications:
    """Those of one partition, by producer id."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def begin(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard:
        """The guard to hold while the coordinator is asked; the one that is there if there is one."""
        known = self._by_producer.get(producer_id)
        if known is None:
            if len(self._by_producer) >= VERIFICATIONS_MAX:
                del self._by_producer[next(iter(self._by_producer))]
            known = Verification(now_ms, sequence, epoch, supports_epoch_bump)
            self._by_producer[producer_id] = known
        else:
            known.tried(sequence, epoch)
        return known.guard

    def accepts(self, producer_id: int, guard: VerificationGuard | None) -> bool:
        known = self._by_producer.get(producer_id)
        return known is not None and known.guard is guard

    def get(self, producer_id: int) -> Verification | None:
        return self._by_producer.get(producer_id)

    def end(self, producer_id: int) -> None:
        """A transactional batch or a marker of the producer is in the log."""
        self._by_producer.pop(producer_id, None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        gone = [pid for pid, known in self._by_producer.items() if now_ms - known.since_ms >= expiration_ms]
        for producer_id in gone:
            del self._by_producer[producer_id]

    def clear(self) -> None:
        self._by_producer.clear()
