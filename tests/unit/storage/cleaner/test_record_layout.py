import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import HEADER_SIZE, Record
from protocol.records.builder import build_batch
from storage.cleaner import record_layout
from storage.cleaner.record_layout import Layout, TableReader
from storage.cleaner.record_table import RecordTable, read_table

keys = st.one_of(st.none(), st.binary(min_size=2, max_size=3), st.just(b"key"))
values = st.one_of(st.none(), st.binary(min_size=19, max_size=20), st.just(b"v" * 20))
record = st.tuples(st.sampled_from([0, 1, 63, 64, 65, -1]), keys, values, st.integers(0, 1))
batch = st.lists(record, min_size=1, max_size=5)


def section_of(rows: list[tuple[int, bytes | None, bytes | None, int]]) -> bytes:
    some, offset = [], 0
    for late, key, value, gap in rows:
        offset += gap
        some.append(Record(offset, 1000 + late, key, value))
        offset += 1
    return bytes(build_batch(some, keep_offsets=True))[HEADER_SIZE:]


def columns(table: RecordTable) -> tuple:
    some = range(0, table.count, 2)
    return (
        table.keys, list(table.offsets(7)), table.null_keys, table.null_values, table.longest_key,
        table.cut(some), table.latest(some), table.latest(range(table.count)),
    )  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(batch, min_size=1, max_size=3), st.lists(st.integers(0, 2), max_size=20))
def test_what_is_read_does_not_depend_on_what_was_read_before(batches: list, order: list[int]) -> None:
    reader = TableReader()
    sections = [(section_of(rows), len(rows)) for rows in batches]
    for number in order:
        section, count = sections[number % len(sections)]
        window = b"\x05" + section + b"\x05\x05"
        table = reader.read(window, 1, 1 + len(section), count)
        assert columns(table) == columns(read_table(section, 0, len(section), count))


def uniform(first: int, size: int = 20, late: int = 1) -> bytes:
    return section_of([(late * i, b"%06d" % (first + i), b"v" * size, 0) for i in range(30)])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the sections that were read record by record or in columns."""
    seen: list[int] = []

    def read(buf: bytes, start: int, end: int, count: int) -> RecordTable:
        seen.append(end - start)
        return read_table(buf, start, end, count)

    monkeypatch.setattr(record_layout, "read_table", read)
    return seen


def test_a_layout_is_learned_from_the_second_section_of_a_size(reads: list[int]) -> None:
    reader = TableReader()
    for first in range(0, 150, 30):
        section = uniform(first)
        table = reader.read(section, 0, len(section), 30)
        assert table.keys == [b"%06d" % (first + i) for i in range(30)]
    assert len(reads) == 2
    assert reader.read(section, 0, len(section), 30, with_keys=False).keys == []


def test_a_layout_that_does_not_fit_is_dropped(reads: list[int]) -> None:
    reader = TableReader()
    plain = uniform(0)
    other = section_of(
        [(i, b"%06d" % i, b"v" * (20 + (i == 3) - (i == 4)), 0) for i in range(30)]  # the same size in all
    )
    assert len(plain) == len(other)
    for section in (plain, plain, plain, other, plain):
        table = reader.read(section, 0, len(section), 30)
        assert columns(table) == columns(read_table(section, 0, len(section), 30))
    assert len(reads) == 4


def test_a_null_value_is_told_from_one_of_the_same_layout() -> None:
    plain = section_of([(0, b"key", b"", 0)])
    null = section_of([(0, b"key", None, 0)])
    assert len(plain) == len(null)
    assert Layout(read_table(plain, 0, len(plain), 1)).read(null, 0, True) is None


def test_the_width_of_time_deltas_belongs_to_the_layout_but_not_their_values() -> None:
    layout = Layout(read_table(uniform(0), 0, len(uniform(0)), 30))
    found = layout.read(uniform(5, late=2), 0, True)
    assert found is not None
    assert found.latest(range(30)) == 58
    wide = uniform(5, late=3)  # deltas of 64 and more take two bytes
    assert layout.read(wide + bytes(30), 0, True) is None


def test_many_sizes_do_not_pile_up() -> None:
    reader = TableReader()
    for size in range(3 * record_layout.LAYOUTS_MAX):
        section = uniform(0, size=size)
        reader.read(section, 0, len(section), 30)
    assert len(reader._known) <= record_layout.LAYOUTS_MAX
