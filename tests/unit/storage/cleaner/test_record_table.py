import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import HEADER_SIZE, Record, records
from protocol.records.builder import build_batch
from storage.cleaner.record_table import BadSection, RecordTable, read_table

keys = st.one_of(st.none(), st.binary(max_size=4), st.just(b"same-key"), st.binary(min_size=70, max_size=140))
values = st.one_of(st.none(), st.just(b"v" * 20), st.binary(max_size=200))
headers = st.lists(st.tuples(st.text(max_size=3), st.one_of(st.none(), st.binary(max_size=3))), max_size=2)
single = st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 63, 64, 9000, -5]), keys, values, headers)
run = st.tuples(single, st.integers(1, 90))


def read(section: bytes, count: int) -> RecordTable:
    """The section as it lies in a window, with other bytes around it."""
    return read_table(b"\x7f" * 3 + section + b"\x02" * 9, 3, 3 + len(section), count)


def check(rows: list[Record], base: int) -> None:
    batch = bytes(build_batch(rows, base_offset=base, keep_offsets=True))
    section = batch[HEADER_SIZE:]
    table = read(section, len(rows))
    found = list(records(batch))
    assert table.keys == [record.key or b"" for record in found]
    assert list(table.offsets(base)) == [record.offset for record in found]
    assert table.null_keys == [i for i, record in enumerate(found) if record.key is None]
    assert table.null_values == [i for i, record in enumerate(found) if record.value is None]
    assert table.longest_key == max((len(record.key or b"") for record in found), default=0)
    each = [table.cut([row]) for row in range(len(rows))]
    assert b"".join(each) == section
    assert all(each)
    first = rows[0].timestamp
    for step in (1, 2, 3):
        some = list(range(0, len(rows), step))
        assert table.cut(some) == b"".join(each[row] for row in some)
        assert first + table.latest(some) == max(found[row].timestamp for row in some)
    assert [first + table.latest([row]) for row in range(min(len(rows), 90))] == [
        r.timestamp for r in found[:90]
    ]


@settings(max_examples=60, deadline=None)
@given(st.lists(run, min_size=1, max_size=6))
def test_columns_are_what_a_reader_sees(runs: list[tuple[tuple, int]]) -> None:
    rows: list[Record] = []
    offset = 1000
    for (gap, late, key, value, some), count in runs:
        for _ in range(count):
            rows.append(Record(offset, 1_700_000_000_000 + late, key, value, tuple(some)))
            offset += 1
        offset += gap
    check(rows, 1000)


@pytest.mark.parametrize("count", [1, 5, 63, 64, 65, 200, 8300])
def test_runs_of_equal_records(count: int) -> None:
    check([Record(i, 7, b"%06d" % i, b"x" * 10) for i in range(count)], 0)


def test_runs_are_taken_as_one_piece() -> None:
    rows = [Record(i, 7, b"%06d" % i, b"x" * 300) for i in range(40)]
    assert [piece[3] for piece in read(bytes(build_batch(rows))[HEADER_SIZE:], 40).pieces] == [40]


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_bytes_that_hold_other_records_than_told_are_refused(cut: int) -> None:
    section = bytes(build_batch([Record(i, 7, b"key", b"value") for i in range(12)]))[HEADER_SIZE:]
    with pytest.raises(BadSection):
        read(section[:-cut], 12)
    with pytest.raises(BadSection):
        read(section, 11)
    with pytest.raises(BadSection):
        read(section, 13)


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(1, 5))
def test_any_bytes_are_read_or_refused(section: bytes, count: int) -> None:
    try:
        table = read(section, count)
    except BadSection:
        return
    assert len(table.keys) == count
