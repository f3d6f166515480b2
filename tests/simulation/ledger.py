"""What simulated transactional producers did, and what readers of committed records may see of it.

A record of a transaction is seen by nobody before its commit was asked for, and never where it was aborted.
In the end a transaction whose commit was acknowledged is there with all its records, each once, and one that
was aborted, or never ended by its producer, with none. Where the answer to a commit was lost it is all or
nothing, the offsets it committed for its group included: the group has those of the last transaction that is
there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tests.simulation.history import TopicPartition, name

NO_OFFSET = -1
Rows = Sequence[tuple[int, bytes]]


class Outcome(Enum):
    """What a producer knows of one of its transactions."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(slots=True, eq=False)
class Txn:
    """One transaction. `offset`: what it commits for each partition of its producer's group, or NO_OFFSET."""

    producer: str
    number: int
    values: dict[bytes, TopicPartition] = field(default_factory=dict)
    offset: int = NO_OFFSET
    commit_asked: bool = False
    outcome: Outcome = Outcome.OPEN

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.producer} ({self.outcome.value})"


class Ledger:
    """See the module. `fail` is told of each breach; `on_step` hears what a producer is about to do."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self._fail = fail
        self._txns: dict[str, list[Txn]] = {}  # by producer, in their order
        self._of: dict[bytes, Txn] = {}
        self.on_step: Callable[[str, str], None] = lambda producer, step: None
        self.seen_records = 0

    def begin(self, producer: str) -> Txn:
        """The next transaction of a producer, who has ended the one before or lost it."""
        own = self._txns.setdefault(producer, [])
        own.append(Txn(producer, len(own) + 1))
        return own[-1]

    def adds(self, txn: Txn, partition: TopicPartition, values: Sequence[bytes]) -> None:
        """Values that are about to be sent in a transaction."""
        for value in values:
            txn.values[value] = partition
            self._of[value] = txn

    def is_transactional(self, value: bytes) -> bool:
        return value in self._of

    def count(self, outcome: Outcome) -> int:
        return sum(txn.outcome is outcome for own in self._txns.values() for txn in own)

    def seen(self, reader: str, partition: TopicPartition, rows: Rows) -> None:
        """A reader of committed records was given these."""
        for offset, value in rows:
            txn = self._of.get(value)
            if txn is None:
                continue
            self.seen_records += 1
            if txn.outcome is Outcome.ABORTED or not txn.commit_asked:
                self._fail(f"{reader}: {partition}@{offset}: {name(value)} of {txn}")

    def check_end(
        self, rows: Mapping[TopicPartition, Rows], offsets: Mapping[str, Mapping[TopicPartition, int]]
    ) -> None:
        """All that readers of committed records get at the end, and what each producer's group has."""
        found: dict[bytes, int] = {}
        for partition, seen in rows.items():
            for offset, value in seen:
                txn = self._of.get(value)
                if txn is None:
                    continue
                found[value] = found.get(value, 0) + 1
                if txn.values[value] != partition:
                    self._fail(f"{partition}@{offset}: {name(value)} was sent to {txn.values[value]}")
        for producer, own in self._txns.items():
            offset = NO_OFFSET
            for txn in own:
                if self._is_there(txn, found) and txn.offset != NO_OFFSET:
                    offset = txn.offset
            for partition, committed in offsets.get(producer, {}).items():
                if committed != offset:
                    self._fail(f"{producer} has committed {committed} of {partition}, not {offset}")

    def _is_there(self, txn: Txn, found: Mapping[bytes, int]) -> bool:
        times = [found.get(value, 0) for value in txn.values]
        if any(each > 1 for each in times):
            self._fail(f"{txn}: a record is there {max(times)} times")
        there = sum(map(bool, times))
        if txn.outcome is Outcome.COMMITTED:
            right = there == len(times)
        elif txn.outcome is Outcome.UNKNOWN:
            right = there in (0, len(times))
        else:
            right = there == 0
        if not right:
            self._fail(f"{txn}: {there} of its {len(times)} records are there")
        return bool(there)
