import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.cleaner.offset_map import COMPACT_BYTES, ENTRY_BYTES, LONG_KEY_BYTES, OffsetMap


def put(table: OffsetMap, *pairs: tuple[bytes, int]) -> int:
    keys = [key for key, _ in pairs]
    return table.put(keys, [offset for _, offset in pairs], max(map(len, keys)))


def get(table: OffsetMap, *keys: bytes) -> list[int | None]:
    return table.get(keys, max(map(len, keys)))


def test_the_newest_offset_of_a_key_counts() -> None:
    table = OffsetMap(1 << 20)
    assert put(table, (b"a", 1), (b"b", 2), (b"a", 3)) == 3
    assert get(table, b"a", b"b", b"c") == [3, 2, None]
    assert len(table) == 2
    assert not table.is_compact


def test_a_full_map_takes_no_more_keys_not_even_known_ones() -> None:
    table = OffsetMap(10 * COMPACT_BYTES, 0.5)
    assert table.capacity == 5
    assert put(table, *[(b"%d" % n, n) for n in range(8)]) == 5
    assert table.utilization == 1.0
    assert put(table, (b"1", 9)) == 0
    assert get(table, b"1", b"4", b"5") == [1, 4, None]


def test_many_keys_are_kept_in_the_compact_form() -> None:
    table = OffsetMap(1 << 20)
    count = (1 << 19) // (ENTRY_BYTES + 6) + 10
    for number in range(count):
        assert put(table, (b"%06d" % number, number)) == 1
    assert table.is_compact
    assert len(table) == count
    assert table.get([b"%06d" % number for number in range(count)], 6) == list(range(count))
    assert put(table, (b"000007", 10**12)) == 1
    assert get(table, b"000007", b"000008", b"x") == [10**12, 8, None]
    assert len(table) == count


@pytest.mark.parametrize("compact", [False, True])
def test_long_keys_are_told_apart_and_from_short_ones(compact: bool) -> None:
    table = OffsetMap(64 << 10 if compact else 1 << 20)
    long = [bytes([n]) * (LONG_KEY_BYTES + 1 + n) for n in range(200)]
    assert put(table, *[(key, n) for n, key in enumerate(long)]) == 200
    if compact:
        put(table, *[(b"fill %d" % n, n) for n in range(300)])
    assert table.is_compact == compact
    assert table.get(long, 300) == list(range(200))
    assert get(table, b"\0" * 81) == [None]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 400), st.sampled_from([1, 20, 90])), min_size=1), max_size=30),
    st.sampled_from([30_000, 200_000, 1 << 20]),
)
def test_a_map_is_a_dictionary_until_it_is_full(puts: list[list[tuple[int, int]]], memory: int) -> None:
    table, model, offset = OffsetMap(memory), dict[bytes, int](), 0
    for each in puts:
        keys = [b"%d-" % number + b"k" * size for number, size in each]
        offsets = range(offset, offset + len(keys))
        offset += len(keys)
        taken = table.put(keys, offsets, max(map(len, keys)))
        for key, at in list(zip(keys, offsets, strict=True))[:taken]:
            model[key] = at
        assert len(table) == len(model)
        if taken < len(keys):
            assert len(model) >= table.capacity
            break
    for key, at in model.items():
        assert table.get([key], len(key)) == [at]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.integers(0, 30), min_size=1, max_size=12), st.booleans()),
        max_size=25,
    )
)
def test_the_newest_records_are_known_without_asking_for_each(batches: list) -> None:
    table, model, offset = OffsetMap(1 << 20), dict[bytes, int](), 500
    noted: list[tuple[int, list[bytes]]] = []
    for gap, numbers, as_list in batches:
        offset += gap
        keys = [b"%d" % number for number in numbers]
        offsets = range(offset, offset + len(keys))
        assert table.put(keys, list(offsets) if as_list else offsets, 2) == len(keys)
        model.update(zip(keys, offsets, strict=True))
        noted.append((offset, keys))
        offset += len(keys)
        table.last_offset = offset - 1
    for base, keys in noted:
        found = table.newest_of(base, len(keys))
        wanted = [model[key] == base + i for i, key in enumerate(keys)]
        assert found is None or list(found) == wanted
        if not any(as_list for _, _, as_list in batches):
            assert found is not None
    assert table.newest_of(0, 1) is None
    assert table.newest_of(offset, 1) is None
