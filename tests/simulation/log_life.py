"""The life of a log on a disk whose power may go at any moment, and what must be true of it afterwards.

Every record's value is a number that only rises, so that what a log holds tells in which order it was
written: records that had been cut off and came back behind newer ones show.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass

from protocol.records.batch import Record, records
from protocol.records.builder import build_batch
from protocol.records.control import ABORT, build_end_marker, read_end_marker
from storage.cleaner.choice import assess
from storage.flush_job import FlushJob
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from storage.scan import BatchFacts, scan
from tests.simulation.power import PowerFileSystem
from tests.support.cleaning import clean_log
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, checked, open_manager, read_records

STEPS = ("append",) * 8 + (
    "roll",
    "flush",
    "sync",
    "checkpoint",
    "epoch",
    "delete",
    "retention",
    "truncate",
) * 1
RARE_STEPS = ("restart", "kill", "files")


@dataclass(slots=True)
class Promise:
    """What the log owes."""

    durable_end: int = 0  # everything below was synced
    start: int = 0  # records below it were deleted, and that was answered
    start_max: int = 0  # the furthest it may have moved


class LogLife:
    """One partition `t-0`, driven by chance. Every step may raise PowerCut."""

    POLICY: tuple[str, ...] = ("delete",)
    STEPS = STEPS
    PRODUCERS = (0, 0, 1, 2, 3)

    def __init__(self, files: PowerFileSystem, seed: int) -> None:
        logging.getLogger("storage").setLevel(logging.CRITICAL)
        self.chance = chance = random.Random(seed)
        self.files = files
        self.config = LogConfig(
            segment_bytes=chance.choice([400, 900, 3000]),
            index_interval_bytes=chance.choice([0, 200]),
            flush_messages=chance.choice([1, 5, 1 << 40]),
            retention_bytes=chance.choice([-1, 1500]),
            file_delete_delay_ms=0,
            cleanup_policy=self.POLICY,
        )
        self.promise = Promise()
        self.written: dict[int, dict[int, int]] = {}  # offset: {number: leader epoch}, of all times
        self.bases: dict[int, int] = {}  # of each number, the offset at which its batch begins
        self.numbers = 0
        self.epoch = 0
        self.sequence = 0
        self.open()

    def open(self) -> None:
        """Start on the disk as it is."""
        self.clock = FixedClock()
        self.manager: LogManager = open_manager(self.files, config=self.config, clock=self.clock)
        self.log: PartitionLog = self.manager.get_or_create("t", 0, TOPIC_ID)
        self.log.set_high_watermark(self.log.end_offset)
        self.jobs: list[FlushJob] = []
        self.manager.on_flush_job(self.jobs.append)

    def live(self, steps: int) -> None:
        """So many steps; PowerCut ends it."""
        for _ in range(steps):
            kinds = RARE_STEPS if self.chance.random() < 0.12 else self.STEPS
            getattr(self, f"_{self.chance.choice(kinds)}")()

    # --- steps

    def _append(self) -> None:
        log = self.log
        for _ in range(self.chance.randint(1, 3)):
            self._stage(self.chance.choice(self.PRODUCERS))
        log.write_pending()
        log.set_high_watermark(log.end_offset)
        if self.config.flush_messages == 1:
            self.promise.durable_end = log.end_offset
        self._note_recovery_point()

    def _stage(self, producer: int) -> None:
        """A batch of no producer (0), an idempotent one (1) or one with transactions (2, 3), or its end."""
        chance, log = self.chance, self.log
        entry = log.producers.entries.get(producer)
        if entry is not None and entry.current_txn_first_offset >= 0 and chance.random() < 0.4:
            data = build_end_marker(
                chance.random() < 0.5, producer_id=producer, producer_epoch=entry.epoch, coordinator_epoch=0,
                timestamp=START_MS + self.numbers,
            )  # fmt: skip
            count = 1
        else:
            count = chance.randint(1, 3)
            rows = []
            for place in range(count):
                number = self.numbers + place
                value = b"%08d" % number + bytes(chance.choice([0, 30, 200]))
                timestamp = START_MS + number * 10 - chance.randint(0, 200)
                rows.append(Record(place, timestamp, self.key_of(number), value))
            data = build_batch(
                rows,
                producer_id=producer or -1,
                producer_epoch=0 if producer else -1,
                base_sequence=(entry.last_sequence + 1 if entry else 0) if producer else -1,
                transactional=producer > 1,
            )
        if len(data) > self.config.segment_bytes:
            return
        base, first = log.next_offset, self.numbers
        self.numbers += count
        for place in range(count):
            self.written.setdefault(base + place, {})[first + place] = self.epoch
            self.bases[first + place] = base
        appended = log.append_as_leader(checked(data), self.epoch, START_MS)
        assert (appended.base_offset, appended.duplicate) == (base, False)

    def key_of(self, number: int) -> bytes | None:
        """Only a compacted log needs keys."""
        return None

    def _note_recovery_point(self) -> None:
        self.promise.durable_end = max(self.promise.durable_end, self.log.recovery_point)

    def _roll(self) -> None:
        self.log.roll(START_MS)

    def _flush(self) -> None:
        self.log.flush()
        self.promise.durable_end = self.log.end_offset

    def _sync(self) -> None:
        while self.jobs:
            job = self.jobs.pop(0)
            job.run()
            job.finish()
        self._note_recovery_point()

    def _checkpoint(self) -> None:
        for directory in self.manager.dirs:
            directory.write_recovery_points()
        self.manager.checkpoint_high_watermarks()

    def _epoch(self) -> None:
        self.epoch += 1

    def _delete(self) -> None:
        log = self.log
        offset = self.chance.randint(log.start_offset, log.end_offset)
        self.promise.start_max = max(self.promise.start_max, offset)
        log.delete_records(offset)
        self.manager.persist_log_starts()
        self.promise.start = log.start_offset

    def _retention(self) -> None:
        self.promise.start_max = self.log.end_offset
        for _ in self.manager.delete_old_segments():
            pass
        self.promise.start_max = self.log.start_offset

    def _files(self) -> None:
        for remove in self.manager.take_doomed():
            remove()

    def _truncate(self) -> None:
        log = self.log
        bases = {self.bases[number] for number in self._held()} - {log.start_offset}
        bases = {base for base in bases if self._may_cut_at(base)}
        if not bases:
            return
        offset = self.chance.choice(sorted(bases))
        if offset > log.start_offset:
            self.promise.durable_end = min(self.promise.durable_end, offset)
            log.truncate_to(offset, START_MS)
            self.epoch += 1

    def _may_cut_at(self, offset: int) -> bool:
        return True

    def _restart(self) -> None:
        self.manager.close()
        self.promise.durable_end = self.log.end_offset
        self.open()
        assert not self.manager.unclean
        self.epoch += 1

    def _kill(self) -> None:
        self.manager.abandon()
        self.open()
        self.epoch += 1

    # --- afterwards

    def _batches(self) -> list[tuple[BatchFacts, bytes]]:
        """All that is in the files, from the first segment on."""
        found = []
        for segment in self.log.local.segments:
            headers = scan(segment.handle, 0, segment.size)
            found += [(facts, segment.handle.read_at(facts.position, facts.size)) for facts in headers]
        return found

    def _held(self) -> dict[int, int]:
        """The number of each record that can be read, and its offset."""
        held = {}
        for facts, data in self._batches():
            for record in records(data):
                if record.offset >= self.log.start_offset:
                    told = record.timestamp - START_MS if facts.control else int((record.value or b"")[:8])
                    held[told] = record.offset
        return held

    def find(self, files: PowerFileSystem) -> None:
        """Start on what is left, and compare."""
        self.files = files
        self.open()
        log, promise = self.log, self.promise
        rows = read_records(log)
        offsets = [row.offset for row in rows]
        assert offsets == sorted(set(offsets)), offsets
        assert promise.start <= log.start_offset <= max(promise.start_max, promise.start)
        assert log.end_offset >= promise.durable_end
        held = {offset: number for number, offset in self._held().items()}
        for offset, number in held.items():
            assert number in self.written[offset], (offset, number)
        numbers = list(held.values())
        assert numbers == sorted(numbers), "what was cut off is back"
        self._compare_durable(held)
        self._compare_producers()
        times = [row.timestamp for row in rows]
        for target in times[:: max(1, len(times) // 5)]:
            found = log.offset_for_timestamp(target, log.end_offset)
            assert found is not None
            assert found.offset == next(row.offset for row in rows if row.timestamp >= target)
        self.epoch += 1
        self._append()
        assert len(read_records(log)) > len(rows) or self.config.segment_bytes < 500
        self.manager.close()

    def _compare_durable(self, held: dict[int, int]) -> None:
        """`held` has the number of each record by its offset."""
        log, promise = self.log, self.promise
        for offset in range(log.start_offset, promise.durable_end):
            newest = max(self.written[offset])
            assert held.get(offset) == newest, (offset, newest, held.get(offset))
            if offset >= promise.start_max:  # those of deleted records go first
                assert log.leader_epochs.epoch_at(offset) == self.written[offset][newest]

    def _compare_producers(self) -> None:
        """Sequences and transactions must be what the batches say, as far as those are still there."""
        log, first = self.log, self.log.local.segments.first.base_offset
        last: dict[int, tuple[int, int]] = {}
        opened: dict[int, int] = {}
        aborted: list[tuple[int, int, int]] = []
        for facts, data in self._batches():
            producer = facts.producer_id
            if facts.control:
                begun = opened.pop(producer, -1)
                marker = read_end_marker(data)
                assert marker is not None
                if marker.type == ABORT:
                    aborted.append((producer, begun, facts.last_offset))
            elif producer >= 0:
                count = facts.last_offset - facts.base_offset
                last[producer] = (facts.base_sequence + count, facts.last_offset)
                if facts.transactional:
                    opened.setdefault(producer, facts.base_offset)
        entries = log.producers.entries
        for producer, expected in last.items():
            assert (entries[producer].last_sequence, entries[producer].last_offset) == expected
        for producer, entry in entries.items():
            begun = entry.current_txn_first_offset
            assert begun == opened.get(producer, -1) or -1 < begun < first, (producer, begun, opened)
        told = [
            (each.producer_id, each.first_offset, each.last_offset)
            for each in log.aborted(first, log.end_offset)
        ]
        # One that began before the first segment may be forgotten with it where it left nothing to hide.
        sure = [entry for entry in aborted if entry[1] >= 0]
        assert {(producer, at) for producer, _, at in sure} <= {(each[0], each[2]) for each in told}
        known = {(producer, at): begun for producer, begun, at in aborted}
        for producer, begun, at in told:
            assert known[producer, at] == begun or begun < first


class CompactedLife(LogLife):
    """The same with a log that is compacted; of each key the newest record has to survive."""

    POLICY = ("compact",)
    STEPS = ("append",) * 6 + ("roll", "flush", "sync", "checkpoint", "epoch", "truncate") + ("clean",) * 3
    PRODUCERS = (0, 0, 1)
    cleaned_end = 0

    def key_of(self, number: int) -> bytes | None:
        return b"key %d" % (number * 7919 % 5)

    def _clean(self) -> None:
        log = self.log
        clean_offset = log.directory.clean_offsets.get(("t", 0))
        if assess(log, clean_offset, self.clock.now_ms()).cleanable_bytes:
            clean_log(self.manager, log, self.clock, flush=False)
        self.cleaned_end = log.active.base_offset

    def _may_cut_at(self, offset: int) -> bool:
        """What the cleaner has read is committed, and that is never cut off."""
        return offset >= self.cleaned_end

    def _compare_durable(self, held: dict[int, int]) -> None:
        wanted: dict[bytes | None, int] = {}
        for offset in range(self.log.start_offset, self.promise.durable_end):
            wanted[self.key_of(max(self.written[offset]))] = offset
        there = {self.key_of(number): offset for offset, number in held.items()}
        for key, offset in wanted.items():
            assert there.get(key, -1) >= offset, (key, offset)
            newest = max(self.written[offset])
            assert held.get(offset, newest) == newest
            if offset in held:
                assert self.log.leader_epochs.epoch_at(offset) == self.written[offset][newest]
