import pytest

from protocol.records import compression
from protocol.records.batch import HEADER_SIZE, Record, read_header, records
from protocol.records.builder import build_batch
from protocol.records.legacy import build_message_set, legacy_records
from storage.cleaner import batch_filter as module
from storage.cleaner.batch_filter import BatchFilter, Fate, FilterSettings, LastRecord
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.transactions import CleanedTransactions
from storage.errors import CorruptLog
from storage.scan import check_crc, facts_at
from storage.txn_index import AbortedTxn
from tests.support.logs import marker

NOW, RETENTION = 10_000, 500


def made(
    newest: dict[bytes, int], *, aborted=(), last=None, round_end: int = 10**9, now: int = NOW
) -> BatchFilter:
    table = OffsetMap(1 << 20)
    table.put([b"-"], [1000], 1)  # what lies below is of the clean part: its keys are looked up
    for key, offset in newest.items():
        table.put([key], [offset], len(key))
    table.last_offset = 1000
    settings = FilterSettings(now, RETENTION, round_end)
    return BatchFilter(table, CleanedTransactions(aborted), settings, last or {})


def decide(batch_filter: BatchFilter, data: bytes | bytearray) -> Fate:
    data = bytes(data)
    return batch_filter.decide(data, 0, facts_at(data.ljust(HEADER_SIZE, b"\0"), 0, 0))


def batch(*rows: tuple[bytes | None, bytes | None, int], base: int = 100, **options) -> bytearray:
    some = [Record(base + i, ts, key, value, (("h", b"x"),)) for i, (key, value, ts) in enumerate(rows)]
    return build_batch(some, base_offset=base, leader_epoch=3, **options)


ROWS = ((b"a", b"1", 50), (b"b", b"2", 90), (b"c", b"3", 70))


def test_a_batch_that_keeps_every_record_stays_as_it_is() -> None:
    assert decide(made({}), batch(*ROWS)) == "keep"
    assert decide(made({b"a": 100, b"b": 101, b"c": 102}), batch(*ROWS)) == "keep"
    assert decide(made({b"a": 99, b"c": 1}), batch(*ROWS)) == "keep"
    assert decide(made({b"a": 5000, b"b": 5000}), batch(*ROWS, base=1001)) == "keep", "behind the map"


def test_a_batch_that_keeps_none_goes() -> None:
    assert decide(made({b"a": 200, b"b": 200, b"c": 200}), batch(*ROWS)) == "drop"
    assert decide(made({}), batch((None, b"1", 5))) == "drop"


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_written_anew_keeps_everything_but_the_records_that_go(codec: int) -> None:
    old = batch(*ROWS, codec=codec, producer_id=5, producer_epoch=2, base_sequence=9, transactional=True)
    new = decide(made({b"b": 200}), old)
    assert isinstance(new, bytearray)
    before, after = read_header(old), read_header(new)
    assert [r for r in records(old) if r.key != b"b"] == list(records(new))
    assert after.max_timestamp == 70, "of the records that are left"
    for field in (
        "base_offset",
        "last_offset",
        "leader_epoch",
        "attributes",
        "producer_id",
        "producer_epoch",
    ):
        assert getattr(after, field) == getattr(before, field)
    assert (after.base_sequence, after.last_sequence, after.record_count) == (9, 11, 2)
    facts = facts_at(bytes(new), 0, 0)
    check_crc(memoryview(new), facts)


def test_log_append_time_stays() -> None:
    old = batch(*ROWS, log_append_time_ms=777)
    new = decide(made({b"b": 200}), old)
    assert read_header(new).max_timestamp == 777
    assert [r.timestamp for r in records(new)] == [777, 777]


@pytest.mark.parametrize("codec", [0, 3])
def test_a_tombstone_gets_a_horizon_and_goes_when_that_has_passed(codec: int) -> None:
    old = batch(*ROWS, (b"d", None, 60), (b"a", b"4", 61), codec=codec)
    new = decide(made({b"a": 104}), old)
    head = read_header(new)
    assert head.attributes == codec | 0x40
    assert head.base_timestamp == NOW + RETENTION
    assert head.max_timestamp == 90
    assert list(records(new)) == list(records(old))[1:]
    assert decide(made({}, now=NOW + RETENTION - 1), new) == "keep"
    later = decide(made({}, now=NOW + RETENTION), new)
    assert list(records(later)) == [r for r in records(new) if r.key != b"d"]
    assert read_header(later).base_timestamp == NOW + RETENTION
    assert read_header(later).max_timestamp == 90


def test_a_tombstone_with_a_newer_record_goes_at_once() -> None:
    assert decide(made({b"d": 200}), batch((b"d", None, 60))) == "drop"


def test_aborted_records_go_at_once_but_not_the_last_batch_of_a_producer() -> None:
    old = batch(*ROWS, codec=1, producer_id=5, producer_epoch=2, base_sequence=9, transactional=True)
    aborted = [AbortedTxn(5, 100, 200, 100)]
    assert decide(made({}, aborted=aborted), old) == "drop"
    new = decide(made({}, aborted=aborted, last={5: LastRecord(102, 2)}), old)
    head = read_header(new)
    assert (head.size, head.record_count, head.attributes) == (HEADER_SIZE, 0, 0x10)
    assert (head.base_sequence, head.last_sequence, head.producer_epoch) == (9, 11, 2)
    assert (head.base_timestamp, head.max_timestamp, head.leader_epoch) == (-1, 90, 3)
    assert decide(made({}, last={5: LastRecord(102, 2)}), new) == "keep"
    assert decide(made({}, last={5: LastRecord(300, 2)}), new) == "drop"


def test_the_last_batch_of_a_round_stays() -> None:
    newest = {b"a": 200, b"b": 200, b"c": 200}
    assert decide(made(newest, round_end=102), batch(*ROWS)) == "drop"
    assert read_header(decide(made(newest, round_end=103), batch(*ROWS))).record_count == 0


def test_a_useless_marker_gets_a_horizon_and_goes_when_that_has_passed() -> None:
    old = marker(5, 2, commit=True, base=100)
    new = decide(made({b"\0\0\0\1": 500}), old)
    assert read_header(new).attributes == 0x70
    assert read_header(new).base_timestamp == NOW + RETENTION
    assert list(records(new)) == list(records(old))
    assert decide(made({}, now=NOW + RETENTION - 1), new) == "keep"
    assert decide(made({}, now=NOW + RETENTION), new) == "drop"
    only_marker = {5: LastRecord(-1, 2)}
    emptied = decide(made({}, now=NOW + RETENTION, last=only_marker), new)
    assert read_header(emptied).record_count == 0
    assert read_header(emptied).is_control
    assert decide(made({}, last=only_marker), emptied) == "keep"
    assert decide(made({}, last={5: LastRecord(-1, 3)}), emptied) == "drop"


def test_a_marker_stays_while_records_of_its_transaction_do() -> None:
    batch_filter = made({})
    old = batch(*ROWS, producer_id=5, producer_epoch=2, base_sequence=9, transactional=True)
    assert decide(batch_filter, old) == "keep"
    assert decide(batch_filter, marker(5, 2, commit=True, base=103)) == "keep"


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_old_formats(magic: int, codec: int) -> None:
    if not codec:
        one = build_message_set([Record(100, 5, b"a", b"1")], magic)
        assert decide(made({}), one) == "keep"
        assert decide(made({b"a": 101}), one) == "drop"
        return
    rows = [Record(100 + i, 5 + i, key, value) for i, (key, value, _) in enumerate(ROWS)]
    rows.append(Record(103, 9, b"d", None))
    old = build_message_set(rows, magic, codec)
    assert decide(made({}), old) == "keep"
    batch_filter = made({b"b": 200})
    batch_filter.keep_legacy_tombstones = False
    new = decide(batch_filter, old)
    assert [(r.offset, r.key) for r in legacy_records(bytes(new))] == [(100, b"a"), (102, b"c")]
    assert new[16] == magic


def test_a_batch_that_would_take_too_much_memory_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLAIN_BYTES_MAX", 20_000)
    batch_filter = made({b"a": 200, b"b": 200, b"c": 200})
    assert decide(batch_filter, batch((b"a", bytes(50_000), 1), codec=4)) == "keep"
    assert batch_filter.stats.left_whole == 1
    assert compression.DECOMPRESS_LIMIT > 20_000


def test_records_that_do_not_parse_are_told() -> None:
    data = batch(*ROWS)
    data[57:61] = (7).to_bytes(4, "big")
    with pytest.raises(CorruptLog):
        decide(made({}), data)
    data = batch(*ROWS, codec=1)
    data[-6] ^= 0xFF
    with pytest.raises(CorruptLog):
        decide(made({}), data)
