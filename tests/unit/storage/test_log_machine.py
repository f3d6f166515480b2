"""A log driven by hypothesis against a list of what it must hold, on a disk that crashes, fills up and fails.

The model is plain: the batches that were written, the offsets, the last batches of each producer. After each
step the log must answer like it, by offset and by time; after a restart it must hold what the model holds,
and after a power cut at least what was flushed, without gaps.
"""

from __future__ import annotations

import contextlib
import errno
import logging

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from protocol.errors import ErrorCode
from storage import segment_dump
from storage.cleaner.choice import assess
from storage.errors import AppendRefused, StorageFailed
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from tests.simulation.files import SimFileSystem
from tests.support.cleaning import clean_log
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, batch, checked, open_manager, read_records

Row = tuple[int, int, bytes]  # offset, timestamp, value


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[Row, ...]] = []  # a tuple for each batch written
        self.start = self.end = self.flushed = 0
        self.sequences: dict[int, list[tuple[int, int, int]]] = {}  # of each producer: first, count, base
        self.sure: dict[int, int] = {}  # how many of the last ones the log must recognise
        self.staged: list[tuple[tuple[Row, ...], int, int, int]] = []
        self.outcomes: list[tuple[int, bool]] = []  # number of the append, whether it was lost
        self.serial = 0
        self.epoch = 0

    @initialize(
        segment=st.sampled_from([300, 700, 4000]),
        interval=st.sampled_from([0, 150, 1000]),
        tail=st.sampled_from([0, 600, 1 << 20]),
        jitter=st.booleans(),
        compacted=st.booleans(),
        retained=st.sampled_from([-1, 1000]),
    )
    def start_up(
        self, segment: int, interval: int, tail: int, jitter: bool, compacted: bool, retained: int
    ) -> None:
        self.config = LogConfig(
            segment_bytes=segment, index_interval_bytes=interval, segment_ms=100_000,
            segment_jitter_ms=50_000 if jitter else 0, retention_bytes=retained, retention_ms=-1,
            cleanup_policy=("compact", "delete") if compacted else ("delete",),
        )  # fmt: skip
        self.cleaned_end = 0
        self.tail = tail
        self.files = SimFileSystem()
        self.open()

    def open(self) -> None:
        logging.getLogger("storage").setLevel(logging.ERROR)
        self.manager: LogManager = open_manager(self.files, config=self.config, clock=FixedClock())
        self.manager.tail_budget.limit_bytes = self.tail
        self.log: PartitionLog = self.manager.get_or_create("t", 0, TOPIC_ID)
        self.log.set_high_watermark(self.log.end_offset)
        self.jobs: list = []
        self.manager.on_flush_job(self.jobs.append)
        self.waiting: list[tuple[int, int]] = []  # number of the append, failures of the log before it

    # --- steps

    @rule(
        count=st.integers(1, 4),
        size=st.integers(0, 90),
        back=st.integers(-500, 500),
        codec=st.sampled_from([0, 0, 1, 3]),
    )
    def stage(self, count: int, size: int, back: int, codec: int) -> None:
        self._stage(count, size, back, codec, -1)

    @rule(producer=st.integers(1, 2), count=st.integers(1, 3))
    def stage_idempotent(self, producer: int, count: int) -> None:
        self._stage(count, 10, 0, 0, producer)

    @rule(producer=st.integers(1, 2), which=st.integers(1, 7))
    def send_again(self, producer: int, which: int) -> None:
        known, sure = self.sequences.get(producer, []), self.sure.get(producer, 0)
        if which > sure and (which <= 5 or sure < 5 or which > len(known)):
            return
        first, count, base = known[-which]
        data = batch(count, producer=producer, epoch=0, sequence=first)
        if which <= 5:
            again = self.log.append_as_leader(checked(data), self.epoch, START_MS)
            assert again.duplicate
            assert again.base_offset == base
        else:
            with pytest.raises(AppendRefused) as refused:
                self.log.append_as_leader(checked(data), self.epoch, START_MS)
            assert refused.value.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _stage(self, count: int, size: int, back: int, codec: int, producer: int) -> None:
        times = [START_MS + self.serial * 100 - back + i * 7 for i in range(count)]
        values = [b"%d." % (self.serial + i) + bytes(size) for i in range(count)]
        self.serial += count
        known = self.sequences.setdefault(producer, [])
        sequence = known[-1][0] + known[-1][1] if known else 0
        keys = [key_of(value) if self.config.compacted else None for value in values]
        data = make_batch(times, keys, values, codec, producer, sequence if producer >= 0 else -1)
        if len(data) > self.config.segment_bytes:
            return
        appended = self.log.append_as_leader(checked(data), self.epoch, START_MS)
        base = self.staged[-1][0][-1][0] + 1 if self.staged else self.end
        assert appended.base_offset == base
        rows = tuple((base + i, times[i], values[i]) for i in range(count))
        number = len(self.outcomes) + len(self.staged)
        self.staged.append((rows, producer, sequence, count))
        if producer >= 0:
            known.append((sequence, count, base))
            self.sure[producer] = min(5, self.sure.get(producer, 0) + 1)
        self.waiting.append((number, self.log.failures))

    def end_turn(self) -> None:
        """What the broker's turn does: write, then tell everybody what became of theirs."""
        if self.waiting:
            with contextlib.suppress(StorageFailed):
                self.log.write_pending()
        self.outcomes += [(number, self.log.failures != before) for number, before in self.waiting]
        self.waiting.clear()

    @rule(fault=st.sampled_from(["none", "none", "none", "full", "short"]))
    def write(self, fault: str) -> None:
        self._write(fault)

    def _write(self, fault: str) -> None:
        staged, self.staged = self.staged, []
        first = len(self.outcomes)
        written_by_roll = self.log.end_offset
        pending = bool(self.log.staged)
        if fault != "none" and pending:
            self.files.fail_next("append", errno.ENOSPC, ".log", 5 if fault == "short" else 0)
        self.end_turn()
        fresh = self.outcomes[first:]
        assert [number for number, _ in fresh] == list(range(first, first + len(staged)))
        failed = fault != "none" and pending
        assert all(lost == failed for _, lost in fresh)
        for rows, producer, sequence, count in staged:
            if not failed or rows[-1][0] < written_by_roll:
                self.rows.append(rows)
                self.end = rows[-1][0] + 1
            elif producer >= 0:
                self.sequences[producer].remove((sequence, count, rows[0][0]))
                self.sure[producer] -= 1
        self.log.set_high_watermark(self.log.end_offset)

    @precondition(lambda self: not self.staged)
    @rule(turns=st.integers(2, 8), count=st.integers(1, 4), producer=st.sampled_from([-1, -1, 1]))
    def many_turns(self, turns: int, count: int, producer: int) -> None:
        """What it takes to have several segments."""
        for _ in range(turns):
            self._stage(count, 30, 50, 0, producer)
            self._write("none")
        self.log.roll(START_MS)

    @precondition(lambda self: not self.staged)
    @rule()
    def roll(self) -> None:
        self.log.roll(START_MS)

    @precondition(lambda self: not self.staged)
    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @rule()
    def run_background(self) -> None:
        for job in self.jobs:
            job.run()
            job.finish()
        self.flushed = max(self.flushed, self.log.recovery_point)
        self.jobs.clear()

    @precondition(lambda self: not self.staged)
    @rule()
    def new_epoch(self) -> None:
        self.epoch += 1

    @precondition(lambda self: not self.staged and self.end > self.start)
    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.start += int(part * (self.end - self.start))
        assert self.log.delete_records(self.start) == self.start
        self.manager.persist_log_starts()
        self._retain()

    @precondition(lambda self: not self.staged)
    @rule()
    def retention(self) -> None:
        self._retain()

    def _retain(self) -> None:
        """What goes is whole segments from the front, as few as bring the log to its size."""
        size = self.log.size_bytes
        list(self.manager.delete_old_segments())
        segments, limit = list(self.log.local.segments), self.config.retention_bytes
        if self.log.start_offset > self.start:
            assert 0 <= limit <= size
        if limit >= 0 and len(segments) > 1:
            assert self.log.size_bytes - limit < segments[0].size
        self.start = max(self.start, segments[0].base_offset)
        assert self.log.start_offset == self.start

    @precondition(lambda self: not self.staged and self.config.compacted)
    @rule()
    def compact(self) -> None:
        """Of each key the newest record below the active segment stays, and all records behind."""
        log = self.log
        self.cleaned_end = active = log.active.base_offset
        clean_offset = log.directory.clean_offsets.get(("t", 0))
        log.flush()
        self.flushed = self.end
        if not assess(log, clean_offset, START_MS).cleanable_bytes:
            return
        clean_log(self.manager, log)
        newest = {key_of(row[2]): row[0] for rows in self.rows for row in rows if row[0] < active}
        kept = [
            tuple(row for row in rows if row[0] >= active or newest[key_of(row[2])] == row[0])
            for rows in self.rows
        ]
        self.rows = [rows for rows in kept if rows]

    @precondition(lambda self: not self.staged and self.rows)
    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        # What the cleaner has read is committed, and never cut off.
        keep = [rows for rows in self.rows if rows[0][0] >= max(self.start, self.cleaned_end)]
        if not keep:
            return
        cut = keep[int(part * (len(keep) - 1))][0][0]
        self.log.truncate_to(cut, START_MS)
        self._forget_from(cut)
        self.epoch += 1

    def _forget_from(self, cut: int) -> None:
        self.rows = [rows for rows in self.rows if rows[-1][0] < cut]
        self.end = cut
        self.flushed = min(self.flushed, cut)
        for producer, known in self.sequences.items():
            # What is left is reloaded from a snapshot and the log: only the last batch is sure to be known,
            # and only if it was not deleted.
            left = self.sequences[producer] = [entry for entry in known if entry[2] < cut]
            self.sure[producer] = 1 if left and left[-1][2] >= self.start else 0

    @precondition(lambda self: not self.staged)
    @rule()
    def restart(self) -> None:
        self.manager.close()
        self.open()
        assert not self.manager.unclean
        assert self.log.end_offset == self.end
        self.flushed = self.end
        self._forget_from(self.end)

    @rule()
    def kill(self) -> None:
        """kill -9: the page cache survives, what was staged does not."""
        self.sequences = {
            p: [k for k in known if k[2] < self.log.end_offset] for p, known in self.sequences.items()
        }
        self._take_over_what_a_roll_wrote()
        self.manager.abandon()
        self.open()
        assert self.manager.unclean
        assert self.log.end_offset == self.end
        self._forget_from(self.end)
        self.epoch += 1

    def _take_over_what_a_roll_wrote(self) -> None:
        for rows, _, _, _ in self.staged:
            if rows[-1][0] < self.log.end_offset:
                self.rows.append(rows)
                self.end = rows[-1][0] + 1
        self.staged.clear()
        assert self.end == self.log.end_offset

    @rule(kept=st.integers(0, 400))
    def power_cut(self, kept: int) -> None:
        """Unsynced bytes are lost but for the first `kept` of each file."""
        self._take_over_what_a_roll_wrote()
        self.files = self.files.crash(lambda path, unsynced: kept if path.endswith(".log") else 0)
        if not self.files.exists("/logs/meta.properties") or not self.files.exists("/logs/t-0"):
            assert self.flushed == 0
        self.open()
        assert self.flushed <= self.log.end_offset <= self.end
        lost_from = self.log.end_offset
        self.start = self.log.start_offset
        self._forget_from(lost_from)
        self.epoch += 1

    # --- what must hold

    @invariant()
    def reads_answer_like_the_model(self) -> None:
        if not hasattr(self, "log") or self.staged:
            return
        log = self.log
        assert log.start_offset <= log.end_offset == log.next_offset == self.end
        wanted = [row for rows in self.rows for row in rows if row[0] >= self.start]
        for max_bytes in (1, 500, 1 << 20):
            found = [(r.offset, r.timestamp, r.value) for r in read_records(log, None, max_bytes)]
            assert found == wanted
        times = sorted({row[1] for row in wanted})
        for target in [*times[:: max(1, len(times) // 4)], START_MS + self.serial * 1000]:
            match = log.offset_for_timestamp(target, log.end_offset)
            expected = next((row for row in wanted if row[1] >= target), None)
            found_at = match and (match.offset, match.timestamp)
            assert found_at == (expected and expected[:2]), (target, found_at, wanted)
        if times:
            best = log.max_timestamp_offset(log.end_offset)
            assert best is not None
            assert best.timestamp == times[-1]
            assert (best.offset, best.timestamp) in [row[:2] for row in wanted]

    @invariant()
    def indexes_are_right(self) -> None:
        if not hasattr(self, "log") or self.staged:
            return
        for segment in self.log.local.segments:
            path = segment.path("")
            if self.files.exists(path + ".index"):
                assert segment_dump.dump_offset_index(self.files, path + ".index").sound
                if self.files.exists(path + ".timeindex"):
                    assert segment_dump.dump_time_index(self.files, path + ".timeindex").sound

    def teardown(self) -> None:
        if hasattr(self, "manager"):
            self.manager.close()


def key_of(value: bytes) -> bytes:
    return b"k%d" % (int(value.partition(b".")[0]) % 4)


def make_batch(times, keys, values, codec, producer, sequence):
    from protocol.records.batch import Record
    from protocol.records.builder import build_batch

    columns = enumerate(zip(times, keys, values, strict=True))
    rows = [Record(i, at, key, value) for i, (at, key, value) in columns]
    return build_batch(
        rows,
        codec=codec,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence,
    )


LogMachine.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
test_log_machine = LogMachine.TestCase
