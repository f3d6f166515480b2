"""Transactions of several producers on a log, driven by hypothesis against a plain list of what was written.

From the list alone the model works out which transactions are open, what a read_committed consumer may see,
what was aborted and which batches are resends. The log must agree after each step, also after rolls, cuts at
either end, failed writes, and restarts after a clean stop, a kill or a power cut.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.errors import ErrorCode
from protocol.records.rules import trusted_batch
from storage.errors import AppendRefused, StorageFailed
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, batch, marker, open_manager

PRODUCERS = st.integers(1, 4)


class Wrote(NamedTuple):
    """A batch in the log. `kind`: plain, data, commit, abort."""

    base: int
    last: int
    kind: str
    producer: int = -1
    epoch: int = 0
    sequence: int = 0


class Txn(NamedTuple):
    producer: int
    first: int
    marker: int  # -1: open
    aborted: bool


class Known:
    """What a producer may do next."""

    def __init__(self) -> None:
        self.epoch, self.sequence, self.first, self.coordinator = 0, 0, -1, 0


class TxnMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.wrote: list[Wrote] = []
        self.mark = self.start = 0

    @initialize(segment=st.sampled_from([200, 500, 5000]))
    def begin(self, segment: int) -> None:
        logging.getLogger("storage").setLevel(logging.ERROR)
        self.files = SimFileSystem()
        self.config = LogConfig(segment_bytes=segment, index_interval_bytes=0, retention_ms=-1)
        self.open()

    def open(self) -> None:
        self.manager = open_manager(self.files, config=self.config, clock=FixedClock())
        self.log = self.manager.get_or_create("t", 0, TOPIC_ID)
        self.replicate_all()

    def replicate_all(self) -> None:
        self.mark = self.log.set_high_watermark(self.log.end_offset)

    # --- the model

    @property
    def end(self) -> int:
        return self.wrote[-1].last + 1 if self.wrote else 0

    def transactions(self) -> list[Txn]:
        opened: dict[int, int] = {}
        found: list[Txn] = []
        for each in self.wrote:
            if each.kind == "data":
                opened.setdefault(each.producer, each.base)
            elif each.kind in ("commit", "abort") and each.producer in opened:
                first = opened.pop(each.producer)
                found.append(Txn(each.producer, first, each.base, each.kind == "abort"))
        return found + [Txn(producer, first, -1, False) for producer, first in opened.items()]

    def known(self, producer: int) -> Known:
        known = Known()
        for each in self.wrote:
            if each.producer == producer:
                if each.epoch != known.epoch:
                    known.epoch, known.sequence = each.epoch, 0
                if each.kind == "data":
                    known.sequence = each.sequence + each.last - each.base + 1
                    known.first = each.base if known.first < 0 else known.first
                else:
                    known.first = -1
        return known

    # --- steps

    def _append(self, wrote: Wrote, data: bytearray, fault: str) -> None:
        if fault != "none":
            self.files.fail_next("append", errno.ENOSPC, ".log", 30 if fault == "short" else 0)
        appended = self.log.append_as_leader(trusted_batch(data), 0, START_MS)
        assert (appended.base_offset, appended.last_offset) == (wrote.base, wrote.last)
        with contextlib.suppress(StorageFailed):
            self.log.write_pending()
            self.wrote.append(wrote)
        assert (self.log.end_offset == wrote.last + 1) == (fault == "none")

    @rule(count=st.integers(1, 3), fault=st.sampled_from(["none", "none", "none", "full", "short"]))
    def plain(self, count: int, fault: str) -> None:
        end = self.end
        self._append(Wrote(end, end + count - 1, "plain"), batch(count), fault)

    @rule(
        producer=PRODUCERS,
        count=st.integers(1, 3),
        fault=st.sampled_from(["none", "none", "none", "full", "short"]),
    )
    def data(self, producer: int, count: int, fault: str) -> None:
        known, end = self.known(producer), self.end
        self._append(
            Wrote(end, end + count - 1, "data", producer, known.epoch, known.sequence),
            batch(count, producer=producer, epoch=known.epoch, sequence=known.sequence, transactional=True),
            fault,
        )

    @rule(
        producer=PRODUCERS,
        commit=st.booleans(),
        bump=st.booleans(),
        fault=st.sampled_from(["none", "none", "none", "full"]),
    )
    def finish(self, producer: int, commit: bool, bump: bool, fault: str) -> None:
        epoch = self.known(producer).epoch + bump
        kind = "commit" if commit else "abort"
        self._append(
            Wrote(self.end, self.end, kind, producer, epoch),
            marker(producer, epoch, commit=commit),
            fault,
        )

    @rule(producer=PRODUCERS)
    def resend(self, producer: int) -> None:
        """The last batch again, and one outside of its transaction."""
        known = self.known(producer)
        mine = [each for each in self.wrote if each.producer == producer]
        if not mine or mine[-1].kind != "data" or mine[-1].base < self.start:
            return
        last = mine[-1]
        again = self.log.append_as_leader(
            trusted_batch(
                batch(
                    last.last - last.base + 1, producer=producer, epoch=last.epoch, sequence=last.sequence,
                    transactional=True,
                )
            ),
            0,
            START_MS,
        )  # fmt: skip
        assert again.duplicate
        assert (again.base_offset, again.last_offset) == (last.base, last.last)
        self._refused(
            batch(1, producer=producer, epoch=known.epoch, sequence=known.sequence),
            ErrorCode.INVALID_TXN_STATE,
        )

    @precondition(lambda self: any(each.epoch for each in self.wrote))
    @rule(producer=PRODUCERS)
    def fenced(self, producer: int) -> None:
        known = self.known(producer)
        if known.epoch:
            old = known.epoch - 1
            code = ErrorCode.INVALID_PRODUCER_EPOCH
            self._refused(marker(producer, old, commit=True), code)
            self._refused(batch(1, producer=producer, epoch=old, sequence=0, transactional=True), code)

    def _refused(self, data: bytearray, error: ErrorCode) -> None:
        with pytest.raises(AppendRefused) as refused:
            self.log.append_as_leader(trusted_batch(data), 0, START_MS)
        assert refused.value.error is error
        assert not self.log.staged

    @rule(part=st.floats(0, 1))
    def replicate(self, part: float) -> None:
        self.mark = self.log.set_high_watermark(self.mark + round(part * (self.end - self.mark)))

    @rule()
    def roll(self) -> None:
        self.log.roll(START_MS)

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.start = self.log.delete_records(self.start + int(part * (self.mark - self.start)))
        self.manager.persist_log_starts()
        self.log.delete_old_segments(START_MS)

    @precondition(lambda self: any(each.base >= self.start for each in self.wrote))
    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        bases = [each.base for each in self.wrote if each.base >= self.start]
        cut = bases[int(part * (len(bases) - 1))]
        self.replicate_all()
        assert self.log.truncate_to(cut, START_MS)
        self.wrote = [each for each in self.wrote if each.last < cut]
        self.mark = cut

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.replicate_all()
        if clean:
            self.manager.close()
        else:
            self.manager.abandon()
        self.open()

    @rule()
    def power_cut(self) -> None:
        self.log.flush()
        self.log.directory.write_recovery_points()
        self.files = self.files.crash(lambda path, unsynced: 0)
        self.open()

    # --- what must hold

    @invariant()
    def the_log_agrees(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        transactions = self.transactions()
        undecided = [txn.first for txn in transactions if txn.marker < 0 or txn.marker >= self.mark]
        first = max(min(undecided), self.start) if undecided else None
        assert self.log.first_unstable_offset == first
        assert self.log.last_stable_offset == (self.mark if first is None else min(first, self.mark))

    @invariant()
    def aborted_lists_are_right(self) -> None:
        if not hasattr(self, "log"):
            return
        aborted = {(txn.producer, txn.first, txn.marker) for txn in self.transactions() if txn.aborted}
        points = sorted({self.start, self.end, (self.start + self.end) // 2})
        for low in points:
            for high in points:
                listed = {entry[:3] for entry in self.log.aborted(low, high)}
                assert listed <= aborted
                assert {a for a in aborted if a[2] >= low and a[1] < high} <= listed
        offset = self.start
        while offset < self.log.last_stable_offset:
            piece = self.log.read(offset, 150, self.log.last_stable_offset)
            if not piece.length:
                break
            listed = {entry[:3] for entry in self.log.aborted_within(offset, piece)}
            following = self._next_offset(piece.to_bytes())
            assert {a for a in aborted if a[2] >= offset and a[1] < following} <= listed <= aborted
            offset = following

    @staticmethod
    def _next_offset(data: bytes) -> int:
        at = following = 0
        while at < len(data):
            following = (
                int.from_bytes(data[at : at + 8], "big") + int.from_bytes(data[at + 23 : at + 27], "big") + 1
            )
            at += int.from_bytes(data[at + 8 : at + 12], "big") + 12
        return following

    def teardown(self) -> None:
        if hasattr(self, "manager"):
            self.manager.close()


TxnMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
test_txn_machine = TxnMachine.TestCase
