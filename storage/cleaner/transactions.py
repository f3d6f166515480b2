"""Transactions as the cleaner meets them: which batches were aborted, which markers nobody needs any more.

Batches are told in the order of the log. A data batch of an aborted transaction may go at once. A marker may
go when no batch of its transaction is left before it; the index entry of an aborted transaction goes with
the last of its batches, which is a pass earlier.
"""

from __future__ import annotations

from collections.abc import Iterable

from protocol.records.control import ABORT, COMMIT, read_end_marker
from storage.scan import BatchFacts
from storage.txn_index import AbortedTxn


class CleanedTransactions:
    """See the module. `aborted`: what the transaction indexes of the log say."""

    __slots__ = ("_aborted", "_committed", "_next", "_open_aborted", "kept")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._aborted = sorted(aborted, key=lambda each: each.first_offset)
        self._next = 0
        self._open_aborted: dict[int, tuple[AbortedTxn, bool]] = {}  # by producer; whether a batch was met
        self._committed: dict[int, None] = {}  # producers with batches that were not aborted, before a marker
        self.kept: list[AbortedTxn] = []  # entries for the new segment's index; the caller takes them

    def sees_aborted(self, facts: BatchFacts) -> bool:
        """A data batch comes by: whether it belongs to an aborted transaction."""
        if not facts.transactional:
            return False
        self._advance(facts.last_offset)
        known = self._open_aborted.get(facts.producer_id)
        if known is not None:
            self._open_aborted[facts.producer_id] = (known[0], True)
            return True
        self._committed[facts.producer_id] = None
        return False

    def sees_useless_marker(self, facts: BatchFacts, batch: bytes | memoryview) -> bool:
        """A control batch comes by: whether it ends nothing of which a batch is left."""
        self._advance(facts.last_offset)
        marker = read_end_marker(batch) if facts.record_count else None
        if marker is None:
            return True  # emptied before
        if marker.type == ABORT:
            known = self._open_aborted.pop(facts.producer_id, None)
            if known is None or not known[1]:
                return True
            self.kept.append(known[0])
            return False
        if marker.type == COMMIT:
            if facts.producer_id not in self._committed:
                return True
            del self._committed[facts.producer_id]
        return False

    def _advance(self, offset: int) -> None:
        """Transactions that begin at or below `offset` are under way."""
        aborted = self._aborted
        while self._next < len(aborted) and aborted[self._next].first_offset <= offset:
            entry = aborted[self._next]
            self._next += 1
            self._open_aborted.setdefault(entry.producer_id, (entry, False))
