"""Whole passes over logs, against a plain model of what compaction must leave."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import HEADER_SIZE, Record, batches, read_header, records
from protocol.records.builder import build_batch, stamp_crc
from protocol.records.control import ABORT, COMMIT, read_end_marker
from runtime import background
from storage.cleaner import session
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from tests.simulation.files import SimFileSystem
from tests.support.cleaning import clean_log
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, append, marker, open_manager, read_records

Row = tuple[int, bytes, bytes | None]
RETENTION_MS = 1000


class Compacted:
    """A compacted log, and what was written to it."""

    def __init__(self, segment_bytes: int = 1000, **values: object) -> None:
        self.clock = FixedClock()
        self.config = LogConfig(
            segment_bytes=segment_bytes, cleanup_policy=("compact",), index_interval_bytes=100,
            delete_retention_ms=RETENTION_MS, **values,
        )  # fmt: skip
        self.files = SimFileSystem(self.clock.now_ms)
        self.sequences: dict[int, int] = {}
        self.open()
        self.log.set_high_watermark(0)

    def open(self) -> None:
        self.manager: LogManager = open_manager(self.files, config=self.config, clock=self.clock)
        self.log: PartitionLog = self.manager.get_or_create("t", 0, TOPIC_ID)
        self.log.set_high_watermark(self.log.end_offset)

    def reopen(self, clean: bool) -> None:
        if clean:
            self.manager.close()
        else:
            self.log.flush()
            self.manager.abandon()
        self.open()

    def put(
        self, *pairs: tuple[bytes | None, bytes | None], codec: int = 0, ts: int = START_MS,
        producer: int = -1, transactional: bool = False,
    ) -> int:  # fmt: skip
        rows = [Record(i, ts, key, value) for i, (key, value) in enumerate(pairs)]
        if producer < 0:
            return append(self.log, build_batch(rows, codec=codec))
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + len(rows)
        return append(
            self.log,
            build_batch(
                rows, codec=codec, producer_id=producer, producer_epoch=0, base_sequence=sequence,
                transactional=transactional,
            ),
        )  # fmt: skip

    def end_transaction(self, producer: int, commit: bool) -> int:
        return append(self.log, marker(producer, 0, commit=commit))

    def clean(self, roll: bool = True, **options: int) -> None:
        if roll:
            self.log.roll(self.clock.now_ms())
        clean_log(self.manager, self.log, self.clock, **options)

    def rows(self) -> list[Row]:
        return [(r.offset, r.key, r.value) for r in data_records(self.log)]

    def headers(self) -> list:
        return [read_header(data) for data in stored(self.log)]


def stored(log: PartitionLog) -> list[bytes]:
    """Every batch of the log."""
    found = []
    for segment in log.local.segments:
        data = segment.handle.read_at(0, segment.size)
        found += [data[at : at + size] for at, size in batches(data)]
    return found


def data_records(log: PartitionLog) -> list[Record]:
    return [r for data in stored(log) if not read_header(data).is_control for r in records(data)]


def read_committed(log: PartitionLog) -> list[Row]:
    """What a consumer with isolation.level=read_committed sees, by the lists that fetches bring."""
    found: list[Row] = []
    offset = log.start_offset
    while offset < log.last_stable_offset:
        piece = log.read(offset, 1 << 20, log.last_stable_offset)
        waiting = sorted(log.aborted_within(offset, piece), key=lambda each: each.first_offset)
        aborting: set[int] = set()
        data = piece.to_bytes()
        if not data:
            break
        for at, size in batches(data):
            head = read_header(data, at)
            while waiting and waiting[0].first_offset <= head.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            if head.is_control:
                end = read_end_marker(data[at : at + size])
                if end is not None and end.type == ABORT:
                    aborting.discard(head.producer_id)
            elif not (head.is_transactional and head.producer_id in aborting):
                found += [(r.offset, r.key, r.value) for r in records(data, at) if r.offset >= offset]
            offset_after = head.last_offset + 1
        offset = offset_after
    return found


def newest(written: list[Row]) -> list[Row]:
    last = {key: offset for offset, key, _ in written}
    return [row for row in written if last[row[1]] == row[0]]


def test_a_pass_keeps_the_newest_record_of_each_key() -> None:
    made = Compacted()
    for number in range(30):
        made.put((b"k%d" % (number % 3), b"v%d" % number), (b"only%d" % number, b"x"))
    made.clean()
    kept = {key: value for _, key, value in made.rows()}
    assert [kept[b"k%d" % n] for n in range(3)] == [b"v27", b"v28", b"v29"]
    assert len(made.rows()) == 33
    assert made.log.end_offset == 60
    assert [(r.offset, r.key) for r in read_records(made.log)] == [row[:2] for row in made.rows()]


rows = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.one_of(st.none(), st.integers(0, 60))), min_size=1, max_size=12),
    min_size=1,
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(rows, st.sampled_from([0, 0, 1, 3]), st.integers(0, 20), st.sampled_from([1000, 2000, 9000]))
def test_passes_over_any_log_leave_what_a_plain_model_keeps(
    rows: list, codec: int, between: int, segment_bytes: int
) -> None:
    made = Compacted(segment_bytes)
    written: list[Row] = []
    for number, each in enumerate(rows):
        pairs = [(b"key-%d" % key, None if size is None else b"v" * size) for key, size in each]
        base = made.put(*pairs, codec=codec, ts=START_MS + number)
        written += [(base + i, key, value) for i, (key, value) in enumerate(pairs)]
        if number == between:
            made.clean()
    made.clean()
    expected = newest(written)
    assert made.rows() == expected
    made.put((b"other", b""))
    made.clock.ms += 2 * RETENTION_MS
    made.clean()
    expected = [row for row in expected if row[2] is not None]
    assert made.rows()[:-1] == expected
    assert made.log.end_offset == len(written) + 1
    made.reopen(clean=False)
    assert made.rows()[:-1] == expected
    assert made.log.end_offset == len(written) + 1


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 3), st.lists(st.integers(0, 5), min_size=1, max_size=5)),
        st.tuples(st.just("plain"), st.integers(4, 5), st.lists(st.integers(0, 5), min_size=1, max_size=5)),
        st.tuples(st.sampled_from(["commit", "abort"]), st.integers(1, 3), st.just([])),
        st.tuples(st.sampled_from(["clean", "clean", "wait", "restart", "crash"]), st.just(0), st.just([])),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(steps, st.sampled_from([600, 1500, 9000]), st.sampled_from([1 << 20, 200]))
def test_transactions_keep_their_meaning_through_any_passes(
    steps: list, segment_bytes: int, memory_bytes: int
) -> None:
    made = Compacted(segment_bytes)
    open_rows: dict[int, list[Row]] = {}
    decided: list[Row] = []
    last: dict[int, tuple[int, int, int]] = {}  # of each producer: sequence, count, base offset

    def check() -> None:
        stable = made.log.last_stable_offset
        visible = [row for row in sorted(decided) if row[0] < stable]
        seen = read_committed(made.log)
        assert set(seen) <= set(visible), "nothing aborted, nothing made up"
        assert {row[1]: row for row in seen} == {row[1]: row for row in visible}
        assert seen == sorted(seen)

    for number, (what, producer, keys) in enumerate(steps):
        if what in ("write", "plain"):
            pairs = [(b"k%d" % key, b"%d" % number) for key in keys]
            sequence = made.sequences.get(producer, 0)
            base = made.put(*pairs, producer=producer, transactional=what == "write")
            last[producer] = (sequence, len(pairs), base)
            new = [(base + i, key, value) for i, (key, value) in enumerate(pairs)]
            if what == "write":
                open_rows.setdefault(producer, []).extend(new)
            else:
                decided += new
        elif what in ("commit", "abort"):
            if producer in open_rows:
                made.end_transaction(producer, what == "commit")
                gone = open_rows.pop(producer)
                decided += gone if what == "commit" else []
        elif what == "clean":
            made.clean(memory_bytes=memory_bytes)
        elif what == "wait":
            made.clock.ms += 2 * RETENTION_MS
        else:
            made.reopen(clean=what == "restart")
        check()
    for producer in list(open_rows):
        made.end_transaction(producer, True)
        decided += open_rows.pop(producer)
    for _ in range(3):
        made.clean()
        check()
        made.clock.ms += 2 * RETENTION_MS
    end = made.log.end_offset
    made.reopen(clean=False)
    check()
    assert made.log.end_offset == end
    for producer, (sequence, count, base) in last.items():
        again = build_batch(
            [Record(i, START_MS, b"k", b"") for i in range(count)], producer_id=producer, producer_epoch=0,
            base_sequence=sequence, transactional=producer < 4,
        )  # fmt: skip
        assert append(made.log, again) == base, "the last batch of each producer is recognised"


def test_a_map_too_small_for_one_segment_still_moves_on() -> None:
    made = Compacted(100_000)
    for number in range(40):
        made.put(*[(b"%d" % key, b"%d" % number) for key in range(10)])
    made.log.roll(made.clock.now_ms())
    offsets = [0]
    for _ in range(80):
        made.clean(roll=False, memory_bytes=200)
        offsets.append(made.log.directory.clean_offsets.get(("t", 0)))
        if offsets[-1] == 400:
            break
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == 400
    assert made.rows() == [(390 + key, b"%d" % key, b"39") for key in range(10)]


def test_tombstones_go_in_two_passes_however_old_their_timestamps_are() -> None:
    made = Compacted()
    made.put((b"a", b"1"), ts=1)
    made.put((b"a", None), (b"b", b"2"), ts=1)
    made.clean()
    assert [row[1:] for row in made.rows()] == [(b"a", None), (b"b", b"2")]
    [head] = [head for head in made.headers() if head.attributes & 0x40]
    assert head.base_timestamp == made.clock.ms + RETENTION_MS
    assert [r.timestamp for r in data_records(made.log)] == [1, 1]
    made.clock.ms += RETENTION_MS - 1
    made.put((b"c", b"3"))
    made.clean()
    assert len(made.rows()) == 3
    made.clock.ms += 1
    made.put((b"d", b"4"))
    made.clean()
    assert [row[1] for row in made.rows()] == [b"b", b"c", b"d"]
    assert [r.timestamp for r in data_records(made.log)] == [1, START_MS, START_MS]


def test_records_without_a_key_go_and_the_end_of_the_round_stays() -> None:
    made = Compacted()
    made.put((None, b"1"), (b"a", b"2"))
    made.put((b"a", b"3"))
    made.put((None, b"4"))
    made.clean()
    assert [row[1:] for row in made.rows()] == [(b"a", b"3")]
    last = made.headers()[-1]
    assert (last.last_offset, last.record_count, last.size) == (3, 0, HEADER_SIZE)


def test_an_emptied_batch_keeps_what_its_producer_needs() -> None:
    made = Compacted()
    made.put((b"a", b"1"), (b"b", b"1"), producer=7, codec=1, ts=5)
    made.put((b"a", b"2"), (b"b", b"2"))
    made.clean()
    empty = made.headers()[0]
    assert (empty.producer_id, empty.producer_epoch, empty.base_sequence, empty.last_sequence) == (7, 0, 0, 1)
    assert (empty.base_offset, empty.last_offset, empty.record_count, empty.codec) == (0, 1, 0, 0)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, 5)


def test_markers_and_index_entries_of_aborted_transactions_go_later_than_their_records() -> None:
    made = Compacted()
    made.put((b"a", b"old"))
    base = made.put((b"a", b"aborted"), producer=1, transactional=True)
    end = made.end_transaction(1, commit=False)
    made.put((b"x", b"1"))
    assert [each.first_offset for each in made.log.aborted(0, 9)] == [base]
    made.clean()
    assert [row[1:] for row in made.rows()] == [(b"a", b"old"), (b"x", b"1")]
    assert end in [head.base_offset for head in made.headers() if head.is_control]
    assert [each.first_offset for each in made.log.aborted(0, 9)] == [base]
    for number in range(3):  # its last batch goes, the marker gets its horizon, the marker goes
        made.put((b"z", b"%d" % number), producer=1)
        made.clean()
        made.clock.ms += 2 * RETENTION_MS
    assert not [head for head in made.headers() if head.is_control]
    assert made.log.aborted(0, 99) == []


def test_open_transactions_are_not_touched() -> None:
    made = Compacted()
    for number in range(10):
        made.put((b"a", b"%d" % number))
    first = made.put((b"a", b"open"), producer=1, transactional=True)
    for number in range(10):
        made.put((b"a", b"%d" % number))
    made.clean()
    assert made.log.directory.clean_offsets.get(("t", 0)) <= first
    assert len([row for row in made.rows() if row[0] >= first]) == 11


def test_batches_larger_than_the_window_are_cleaned() -> None:
    made = Compacted(1 << 20)
    for number in range(6):
        made.put((b"k%d" % (number % 2), bytes(150_000)), (b"n%d" % number, b"x"))
    made.clean(window_bytes=1)
    assert [row[0] for row in made.rows()] == [1, 3, 5, 7, 8, 9, 10, 11]


def test_what_was_read_and_written_is_told() -> None:
    made, told = Compacted(), []
    for number in range(50):
        made.put((b"k", b"%d" % number))
    made.log.roll(made.clock.now_ms())
    before = made.log.size_bytes
    clean_log(made.manager, made.log, made.clock, took=told.append)
    assert sum(told) == 2 * before + made.log.size_bytes


def test_a_worker_keeps_a_pass_between_calls(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "lower_priority", lambda: None)
    log = build_batch([Record(0, 1, b"a", b"1")]) + build_batch([Record(0, 1, b"a", b"2")], base_offset=1)
    (tmp_path / "00000000000000000000.log").write_bytes(log)
    source = session.Source(str(tmp_path / "00000000000000000000.log"), 0, len(log), 0, 0, 7_000)
    request = session.PassRequest(str(tmp_path), [source], 0, 2, [], 1, 1, 4096, 0, 1 << 20)
    with pytest.raises(RuntimeError, match="no pass"):
        session.clean_group([source], {})
    assert session.begin(request).end_offset == 2
    done = session.clean_group([source], {})
    session.end()
    written = (tmp_path / "00000000000000000000.log.cleaned").read_bytes()
    assert [r.value for r in records(written)] == [b"2"]
    assert done.segment.size == len(written)
    assert (tmp_path / "00000000000000000000.log.cleaned").stat().st_mtime == 7
    with pytest.raises(RuntimeError, match="no pass"):
        session.clean_group([source], {})


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
def test_a_user_key_that_is_spelled_as_that_of_a_marker_is_another_one(kind: int) -> None:
    """storage.md 94."""
    made = Compacted()
    made.put((b"a", b"1"), producer=1, transactional=True)
    end = made.end_transaction(1, commit=kind == COMMIT)
    key = bytes([0, 0, 0, kind])
    made.put((key, b"user"))
    made.put((b"b", b"2"))
    made.clean()
    [marker_head] = [head for head in made.headers() if head.is_control]
    assert (marker_head.base_offset, marker_head.record_count) == (end, 1)
    assert (end + 1, key, b"user") in made.rows()


def test_an_emptied_marker_is_no_obstacle() -> None:
    """storage.md 95: a producer that left only a marker keeps it as a header without records."""
    made = Compacted()
    made.end_transaction(1, commit=True)
    for number in range(4):
        made.put((b"a", b"%d" % number))
        made.clean()
        made.clock.ms += 2 * RETENTION_MS
    [empty] = [head for head in made.headers() if head.is_control]
    assert (empty.base_offset, empty.record_count, empty.size) == (0, 0, HEADER_SIZE)
    made.reopen(clean=True)
    made.put((b"a", b"last"))
    made.clean()
    assert [head.base_offset for head in made.headers() if head.is_control] == [0]
    made.reopen(clean=False)
    assert [row[1:] for row in made.rows()] == [(b"a", b"last")]


def test_offsets_that_are_missing_at_the_end_of_a_segment_are_clean() -> None:
    """storage.md 100: else the log would stay dirty for ever."""
    made = Compacted()
    made.put((b"a", b"1"))
    made.log.append_as_follower(
        build_batch([Record(50, START_MS, b"b", b"2")], base_offset=50, leader_epoch=0), START_MS
    )
    made.log.set_high_watermark(made.log.end_offset)
    made.log.roll(made.clock.now_ms())
    first = made.log.active.base_offset
    made.log.append_as_follower(
        build_batch([Record(90, START_MS, b"c", b"3")], base_offset=90, leader_epoch=0), START_MS
    )
    made.log.set_high_watermark(made.log.end_offset)
    made.clean(roll=False)
    assert made.log.directory.clean_offsets.get(("t", 0)) == first == 51
    assert [row[0] for row in made.rows()] == [0, 50, 90]


def test_records_that_share_an_offset_are_told_apart_by_their_keys() -> None:
    """Kafka doesn't look at the offsets inside of a plain batch, so its logs may hold any."""
    made = Compacted()
    data = build_batch([Record(i, START_MS, b"k%d" % i, b"v") for i in range(3)])
    second = data.index(b"k1") - 2  # its offset delta
    assert data[second] == 2
    data[second] = 0
    stamp_crc(data, 0, len(data))
    append(made.log, data)
    made.put((b"k0", b"new"))
    made.clean()
    assert [row[1:] for row in made.rows()] == [(b"k1", b"v"), (b"k2", b"v"), (b"k0", b"new")]
