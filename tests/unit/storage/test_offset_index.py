import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.offset_index import OffsetIndex
from tests.simulation.files import SimFileSystem

PATH = "/p/00000000000000000045.index"
BASE = 45


def index(*entries, sealed=False):
    files = SimFileSystem()
    files.make_dirs("/p")
    made = OffsetIndex(files, PATH, BASE, fresh=True)
    for offset, position in entries:
        made.append(offset, position)
    if sealed:
        made.unload()
    return files, made


@pytest.mark.parametrize("sealed", [False, True])
def test_lookup_finds_the_greatest_entry_not_above(sealed):
    _, made = index((50, 10), (60, 20), (70, 30), sealed=sealed)
    assert made.lookup(44) == made.lookup(49) == (BASE, 0)
    assert made.lookup(50) == (50, 10)
    assert made.lookup(69) == (60, 20)
    assert made.lookup(1 << 40) == (70, 30)
    assert made.position_up_to(9) == 0
    assert made.position_up_to(20) == 20
    assert made.position_up_to(29) == 20


def test_an_empty_index_starts_at_the_base():
    _, made = index()
    assert made.lookup(100) == (BASE, 0)
    assert made.last == (BASE, 0)
    assert made.entries == 0
    with pytest.raises(IndexError):
        made.entry(0)


def test_offsets_must_rise_and_fit_31_bits():
    _, made = index((50, 10))
    for bad in (50, 44, BASE + (1 << 31)):
        with pytest.raises(ValueError, match="offset"):
            made.append(bad, 20)
    made.append(BASE + (1 << 31) - 1, 20)
    assert made.entries == 2


def test_the_file_does_not_exist_before_it_is_needed_and_has_exactly_its_entries():
    files, made = index()
    assert not files.exists(PATH)
    made.append(50, 10)
    made.write_out()
    assert files.read_bytes(PATH) == bytes([0, 0, 0, 5, 0, 0, 0, 10])
    made.close()
    again = OffsetIndex(files, PATH, BASE)
    assert again.entries == 1
    assert again.entry(0) == (50, 10)
    assert again.problem() is None


@pytest.mark.parametrize(
    ("offset", "left"), [(100, 3), (71, 3), (70, 2), (65, 2), (60, 1), (51, 1), (50, 0), (0, 0)]
)
@pytest.mark.parametrize("written", [False, True])
def test_truncation_by_offset(offset, left, written):
    files, made = index((50, 10), (60, 20), (70, 30))
    if written:
        made.write_out()
    made.truncate_to(offset)
    assert made.entries == left
    made.append(200, 99)
    made.write_out()
    made.close()
    again = OffsetIndex(files, PATH, BASE)
    assert [again.entry(i) for i in range(again.entries)] == [
        *[(50, 10), (60, 20), (70, 30)][:left],
        (200, 99),
    ]


def test_zeros_at_the_end_do_not_count():
    files, made = index((50, 10), (60, 20))
    made.write_out()
    made.close()
    handle = files.open(PATH)
    handle.append([bytes(8 * 1000)])
    assert OffsetIndex(files, PATH, BASE, repair=False).entries == 1002
    again = OffsetIndex(files, PATH, BASE)
    assert again.entries == 2
    assert files.size(PATH) == 16


def test_a_single_entry_at_the_base_is_sound():
    files, made = index((BASE, 1))
    made.write_out()
    assert OffsetIndex(files, PATH, BASE).problem() is None
    files.open(PATH).append([b"abc"])
    assert "multiple" in OffsetIndex(files, PATH, BASE, repair=False).problem()
    files.write_atomic(PATH, (-5 & 0xFFFFFFFF).to_bytes(4, "big") + bytes(4))
    assert "below the base" in OffsetIndex(files, PATH, BASE, repair=False).problem()


def test_a_failed_write_keeps_the_entries_for_the_next_one():
    files, made = index((50, 10))
    files.fail_next("append", 28, ".index", written_bytes=3)
    with pytest.raises(OSError, match="space"):
        made.write_out(create=True)
    made.append(60, 20)
    made.write_out()
    made.close()
    assert OffsetIndex(files, PATH, BASE).entry(1) == (60, 20)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 50)), max_size=1500),
    st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 60000)), min_size=1, max_size=30),
)
def test_a_sealed_index_answers_as_one_in_memory(steps, questions):
    offset, position, entries = BASE, 0, []
    for up, bytes_on in steps:
        offset, position = offset + up, position + bytes_on
        entries.append((offset, position))
    _, live = index(*entries)
    _, sealed = index(*entries, sealed=True)
    for ask, at in questions:
        wanted = max((e for e in entries if e[0] <= BASE + ask), default=(BASE, 0))
        assert live.lookup(BASE + ask) == sealed.lookup(BASE + ask) == wanted
        wanted_position = max((p for _, p in entries if p <= at), default=0)
        assert live.position_up_to(at) == sealed.position_up_to(at) == wanted_position
        before = max((p for o, p in entries if o < BASE + ask), default=0)
        after = min((p for o, p in entries if o >= BASE + ask), default=-1)
        assert live.around(BASE + ask) == sealed.around(BASE + ask) == (before, after)
