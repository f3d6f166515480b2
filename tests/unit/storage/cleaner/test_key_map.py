from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.legacy import build_message_set
from storage.cleaner.grouping import Source
from storage.cleaner.key_map import KeyMapBuilder
from storage.cleaner.offset_map import COMPACT_BYTES, OffsetMap
from storage.cleaner.transactions import CleanedTransactions
from storage.txn_index import AbortedTxn
from tests.simulation.files import SimFileSystem
from tests.support.logs import marker


def mapped(
    data: bytes, start: int = 0, end: int = 100, capacity: int = 100, aborted=()
) -> tuple[OffsetMap, bool]:
    files = SimFileSystem()
    files.open("/log", create=True).append([data])
    table = OffsetMap(capacity * COMPACT_BYTES, 1.0)
    builder = KeyMapBuilder(table, CleanedTransactions(aborted), start, 1 << 16, lambda size: None)
    whole = builder.read(files, Source("/log", 0, len(data), 0, 0, 0), end)
    assert builder.stats.bytes_read == len(data)
    return table, whole


def batch(base: int, *keys: bytes | None, **options) -> bytes:
    rows = [Record(base + i, 1, key, b"v") for i, key in enumerate(keys)]
    return bytes(build_batch(rows, base_offset=base, **options))


def get(table: OffsetMap, *keys: bytes) -> list[int | None]:
    return table.get(keys, 9)


def test_the_newest_offset_of_each_key_is_noted_whatever_the_codec() -> None:
    table, whole = mapped(batch(0, b"a", b"b") + batch(2, b"a", b"c", codec=1) + batch(4, b"c", codec=4))
    assert whole
    assert get(table, b"a", b"b", b"c") == [2, 1, 4]
    assert table.last_offset == 99, "offsets missing at the end of the segment belong to nobody"


def test_only_records_from_the_start_offset_on_count() -> None:
    table, _ = mapped(batch(0, b"a", b"b", b"a", b"d"), start=2)
    assert get(table, b"a", b"b", b"d") == [2, None, 3]


def test_records_without_a_key_have_no_entry() -> None:
    table, _ = mapped(batch(0, None, b"a", None))
    assert get(table, b"", b"a") == [None, 1]


def test_a_full_map_ends_the_pass_at_the_last_record_taken() -> None:
    table, whole = mapped(batch(0, b"a", b"b") + batch(2, b"c", b"d", b"e"), capacity=3)
    assert not whole
    assert table.last_offset == 2
    assert len(table) == 3


def test_markers_and_aborted_batches_are_passed_over() -> None:
    txn = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    data = batch(0, b"a") + batch(1, b"a", b"x", **txn) + bytes(marker(1, 0, commit=False, base=3))
    table, _ = mapped(data, aborted=[AbortedTxn(1, 1, 3, 1)])
    assert get(table, b"a", b"x") == [0, None]
    table, _ = mapped(data)
    assert get(table, b"a", b"x", b"\0\0\0\0") == [1, 2, None]


def test_old_messages_have_keys_too() -> None:
    data = build_message_set(
        [Record(0, 1, b"a", b"1"), Record(1, 1, None, b"1"), Record(2, 1, b"a", b"2")], 1, 1
    )
    table, _ = mapped(bytes(data))
    assert get(table, b"a", b"") == [2, None]
