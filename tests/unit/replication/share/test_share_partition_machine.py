"""The state machine of a share partition against a model of single records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.errors import ErrorCode
from replication.share.acknowledge import Ack, AckRefused, AckType
from replication.share.acquire import BATCH_OPTIMIZED, RECORD_LIMIT, Wish
from replication.share.ports import Limits
from replication.share.runs import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE
from tests.unit.replication.share.model import Model
from tests.unit.replication.share.play import log, share

MEMBERS = ("ann", "bob", "cat")
BECOMES = {
    AckType.GAP: ARCHIVED,
    AckType.ACCEPT: ACKNOWLEDGED,
    AckType.RELEASE: AVAILABLE,
    AckType.REJECT: ARCHIVED,
}


class ShareMachine(RuleBasedStateMachine):
    """Acquire, say, give back, time out, in any order; state writes end well or badly, in any order."""

    @initialize(limit=st.integers(2, 6), locks=st.integers(10, 60))
    def begin(self, limit: int, locks: int) -> None:
        self.limits = Limits(1000, limit, locks)
        self.share = share(limits=self.limits)
        self.model = Model(limit, 1000)
        self.now_ms = 1
        self.spans: list[tuple[int, int]] = []
        self.log_end = 0
        self.log_start = 0
        self.pending: list[Any] = []

    @rule(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
    def produce(self, sizes: list[int]) -> None:
        for size in sizes:
            self.spans.append((self.log_end, self.log_end + size - 1))
            self.log_end += size

    @rule(
        member=st.sampled_from(MEMBERS),
        limited=st.booleans(),
        most=st.integers(1, 30),
        batch_size=st.integers(1, 30),
        read=st.integers(1, 8),
    )
    def acquire(self, member: str, limited: bool, most: int, batch_size: int, read: int) -> None:
        if not self.share.can_acquire():
            return
        offset = self.share.next_offset()
        if offset < self.log_start:
            self.share.move_start(self.log_start)
            self.model.move_start(self.log_start)
            return
        spans = [span for span in self.spans if span[1] >= offset][:read]
        wish = Wish(member, offset, most, batch_size, RECORD_LIMIT if limited else BATCH_OPTIMIZED)
        before = self.model.end
        found = self.share.acquire(wish, log(*spans), self.now_ms)
        for first, last, count in found.ranges:
            self.model.acquired(first, last, count, member, self.now_ms)
        self.model.grow(self.share.window.end_offset + 1 if self.share.window.batches else self.model.end)
        assert found.count == sum(last - first + 1 for first, last, _ in found.ranges)
        if limited:
            assert found.count <= most
        else:
            assert found.count < most + max([last - first + 1 for first, last in self.spans], default=0) + 30
        if spans and self.model.end > before:
            assert before - self.model.start < self.limits.max_record_locks
        if spans and offset < self.model.end:
            assert found.ranges, "the record that was read for is free"

    @rule(data=st.data(), member=st.sampled_from(MEMBERS))
    def say(self, data: st.DataObject, member: str) -> None:
        if self.model.end == 0:
            return
        first = data.draw(st.integers(max(self.model.start - 3, 0), self.model.end))
        last = first + data.draw(st.integers(0, 12))
        kinds = st.sampled_from(list(AckType))
        size = data.draw(st.sampled_from([1, last - first + 1]))
        types = data.draw(st.lists(kinds, min_size=size, max_size=size))
        right = last < self.model.start or self.model.may_ack(first, last, member)
        acks = [Ack(first, last, types)]
        if not right:
            with pytest.raises(AckRefused) as refused:
                self.share.acknowledge(member, acks, self.now_ms, True)
            assert refused.value.error in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD_STATE)
            self._renewed_before_refusal()
            return
        transition = self.share.acknowledge(member, acks, self.now_ms, True)
        for offset in range(max(first, self.model.start), last + 1):
            kind = types[offset - first] if len(types) > 1 else types[0]
            if kind is AckType.RENEW:
                self.model.cells[offset].deadline_ms = self.now_ms + 1000
            else:
                self.model.stage(offset, BECOMES[kind], transition)
        self.pending.append(transition)

    def _renewed_before_refusal(self) -> None:
        """Locks that a refused request has renewed stay so; and what ran out is free."""
        for batch in self.share.window.batches:
            for run in batch.runs:
                for offset in range(run.first, run.last + 1):
                    cell = self.model.cells.get(offset)
                    if cell is not None and run.state == ACQUIRED == cell.state:
                        assert run.deadline_ms in (cell.deadline_ms, self.now_ms + 1000)
                        cell.deadline_ms = run.deadline_ms
                    elif cell is not None and cell.state == ACQUIRED and cell.deadline_ms <= self.now_ms:
                        gone = offset < self.model.start or cell.count >= self.model.limit
                        cell.state, cell.member = (ARCHIVED if gone else AVAILABLE), ""

    @rule(member=st.sampled_from(MEMBERS))
    def release(self, member: str) -> None:
        transition = self.share.release(member)
        self.model.release(member, transition)
        self.pending.append(transition)

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), kept=st.booleans())
    def finish(self, data: st.DataObject, kept: bool) -> None:
        transition = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
        for batch in self.share.state_batches(transition):
            assert batch.first_offset >= self.model.start
        if kept:
            self.share.commit(transition)
        else:
            self.share.roll_back(transition, self.now_ms)
        self.model.finish(transition, kept, self.now_ms)

    @rule(step=st.integers(1, 700))
    def wait(self, step: int) -> None:
        self.now_ms += step
        deadline = self.share.next_deadline_ms()
        held = [c.deadline_ms for c in self.model.cells.values() if c.state == ACQUIRED]
        if held:
            assert deadline is not None
            assert deadline <= min(held)
        self.share.expire(self.now_ms)
        self.model.expire(self.now_ms)
        self.share.advance()
        self.model.advance()

    @precondition(lambda self: self.log_end > 0)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        self.log_start = data.draw(st.integers(self.log_start, self.log_end))

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "share"):
            return
        window = self.share.window
        assert window.start_offset == self.model.start
        assert self.share.next_offset() == self.model.next_offset
        assert window.complete_count == self.model.complete_count
        for batch, following in zip(window.batches, [*window.batches, None][1:], strict=True):
            assert batch.runs[0].first == batch.first
            assert batch.runs[-1].last == batch.last
            assert following is None or batch.last < following.first
            for run, after in zip(batch.runs, batch.runs[1:], strict=False):
                assert run.last + 1 == after.first
            for run in batch.runs:
                for offset in range(run.first, run.last + 1):
                    cell = self.model.cells.get(offset)
                    if cell is None:  # the model forgets each record, the window whole batches
                        assert offset < self.model.start
                        assert run.state in (ACKNOWLEDGED, ARCHIVED)
                        continue
                    assert (run.state, run.count, run.member) == (cell.state, cell.count, cell.member)
                    assert (run.staged is None) == (cell.staged is None)
                    assert run.state != ACQUIRED or run.deadline_ms == cell.deadline_ms


TestShareMachine = ShareMachine.TestCase
TestShareMachine.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
