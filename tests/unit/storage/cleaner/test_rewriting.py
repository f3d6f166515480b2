import pytest

from storage import names, txn_index
from storage.cleaner import rewriting
from storage.cleaner.batch_filter import BatchFilter, FilterSettings
from storage.cleaner.grouping import Source
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.rewriting import CleanedSegment, SegmentWriter, rewrite
from storage.cleaner.transactions import CleanedTransactions
from storage.segment_scan import ScanRequest, scan_log
from storage.txn_index import AbortedTxn
from tests.simulation.files import SimFileSystem
from tests.support.logs import batch, marker

INTERVAL = 300


def rewritten(
    files: SimFileSystem, *contents: bytes, newest: dict[bytes, int] | None = None, aborted=()
) -> CleanedSegment:
    """Write segments with these contents and clean them into one."""
    files.make_dirs("/p")
    sources = []
    for number, data in enumerate(contents):
        path = f"/p/{names.segment_file(number * 100, names.LOG)}"
        files.open(path, create=True).append([data])
        sources.append(Source(path, number * 100, len(data), 0, 0, 5000 + number))
    table = OffsetMap(1 << 20)
    for key, offset in (newest or {}).items():
        table.put([key], [offset], len(key))
    table.last_offset = 10_000
    writer = SegmentWriter(files, "/p", 0, INTERVAL, lambda size: None)
    filtering = BatchFilter(table, CleanedTransactions(aborted), FilterSettings(1, 1, 10**9), {})
    return rewrite(files, sources, writer, filtering, 1 << 16, lambda size: None, 0)


def cleaned(files: SimFileSystem, suffix: str) -> bytes:
    return files.read_bytes(f"/p/{names.segment_file(0, suffix)}{names.CLEANED}")


def test_a_group_becomes_one_segment_with_the_indexes_that_recovery_would_build() -> None:
    files = SimFileSystem()
    first = b"".join(bytes(batch(1, base=n, key=b"k%d" % n, size=50, ts=1000 + n % 7)) for n in range(20))
    second = b"".join(bytes(batch(2, base=100 + 2 * n, key=b"x", size=50, ts=1005 + n)) for n in range(20))
    done = rewritten(files, first, second, newest={b"x": 139, b"k3": 4000})
    found = scan_log(files, ScanRequest(f"/p/{'0' * 20}.log.cleaned", 0, done.size, INTERVAL))
    assert found.whole
    assert found.next_offset == 140
    assert cleaned(files, names.OFFSET_INDEX) == found.offset_entries
    assert cleaned(files, names.TIME_INDEX).startswith(found.time_entries)
    assert found.offset_entries
    assert done.bytes_read == len(first) + len(second)
    assert files.mtime_ms(f"/p/{'0' * 20}.log.cleaned") == 5001
    assert not files.exists(f"/p/{'0' * 20}.txnindex.cleaned")


def test_everything_is_synced() -> None:
    files = SimFileSystem()
    done = rewritten(files, bytes(batch(3, key=b"k", base=0)))
    files.sync_dir("/p")
    after = files.crash()
    assert after.size(f"/p/{'0' * 20}.log.cleaned") == done.size
    assert after.exists(f"/p/{'0' * 20}.index.cleaned")


def test_aborted_transactions_of_which_a_batch_was_met_stay_in_the_index() -> None:
    files = SimFileSystem()
    data = batch(1, base=0, producer=1, sequence=0, transactional=True, key=b"a")
    data += marker(1, 0, commit=False, base=1) + marker(2, 0, commit=False, base=2)
    entries = [AbortedTxn(1, 0, 1, 0), AbortedTxn(2, 0, 2, 0)]
    rewritten(files, bytes(data), aborted=entries)
    [(_, *fields)] = txn_index.ENTRY.iter_unpack(cleaned(files, names.TXN_INDEX))
    assert AbortedTxn(*fields) == entries[0]


def test_leftovers_of_a_pass_that_was_broken_off_are_written_over() -> None:
    files = SimFileSystem()
    files.make_dirs("/p")
    for suffix in (names.LOG, names.OFFSET_INDEX):
        files.open(f"/p/{'0' * 20}{suffix}.cleaned", create=True).append([bytes(10_000)])
    data = bytes(batch(1, key=b"k"))
    rewritten(files, data)
    assert cleaned(files, names.LOG) == data
    assert cleaned(files, names.OFFSET_INDEX) == b""


def test_a_group_of_which_nothing_is_left_keeps_its_place() -> None:
    files = SimFileSystem()
    done = rewritten(files, bytes(batch(1, key=b"k")), newest={b"k": 50})
    assert done.size == 0
    assert cleaned(files, names.LOG) == cleaned(files, names.TIME_INDEX) == b""


def test_a_sync_that_fails_beside_the_work_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "SYNC_BYTES", 10)
    files = SimFileSystem()
    files.make_dirs("/p")
    writer = SegmentWriter(files, "/p", 0, INTERVAL, lambda size: None, lambda work: work)
    files.fail_next("sync", 5)
    data = bytes(batch(1))
    writer.note(len(data), 0, 1, 1)
    writer.write([data])
    with pytest.raises(OSError, match="error"):
        writer.finish([], 0)


def test_a_full_disk_is_told() -> None:
    files = SimFileSystem()
    files.fail_next("append", 28, ".cleaned")
    with pytest.raises(OSError, match="space"):
        rewritten(files, bytes(batch(1, key=b"k")))
