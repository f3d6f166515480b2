from hypothesis import given, settings
from hypothesis import strategies as st

from storage.cleaner.grouping import SEGMENTS_MAX, Source, group
from storage.offset_index import RELATIVE_MAX

BIG = 1 << 40


def source(base: int, size: int = 10, offset_index: int = 8, time_index: int = 12) -> Source:
    return Source(f"{base}.log", base, size, offset_index, time_index, 0)


def bases(groups: list[list[Source]]) -> list[list[int]]:
    return [[each.base_offset for each in some] for some in groups]


def test_neighbours_are_put_together_up_to_the_size_of_a_segment() -> None:
    sources = [source(n * 10, size) for n, size in enumerate((40, 60, 1, 100, 50, 50, 50))]
    assert bases(group(sources, 70, 100, BIG)) == [[0, 10], [20], [30], [40, 50], [60]]


def test_each_index_limits_a_group() -> None:
    sources = [source(n * 10) for n in range(5)]
    assert bases(group(sources, 50, BIG, 24)) == [[0, 10], [20, 30], [40]]
    sources = [source(n * 10, offset_index=24, time_index=0) for n in range(3)]
    assert bases(group(sources, 30, BIG, 48)) == [[0, 10], [20]]


def test_a_group_never_spans_more_offsets_than_an_index_holds() -> None:
    sources = [source(0), source(RELATIVE_MAX - 1)]
    assert bases(group(sources, RELATIVE_MAX + 1, BIG, BIG)) == [[0, RELATIVE_MAX - 1]]
    assert bases(group(sources, RELATIVE_MAX + 2, BIG, BIG)) == [[0], [RELATIVE_MAX - 1]]


def test_an_empty_segment_goes_with_its_neighbour_however_far_it_lies() -> None:
    sources = [source(0, 0), source(3 * RELATIVE_MAX, 0), source(6 * RELATIVE_MAX, 5)]
    assert bases(group(sources, 6 * RELATIVE_MAX + 9, BIG, BIG)) == [
        [0, 3 * RELATIVE_MAX],
        [6 * RELATIVE_MAX],
    ]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, RELATIVE_MAX), st.integers(0, 120)), max_size=20))
def test_groups_cover_all_segments_in_order(steps: list[tuple[int, int]]) -> None:
    sources, base = [], 0
    for gap, size in steps:
        sources.append(source(base, size))
        base += gap
    groups = group(sources, base, 100, BIG)
    assert [each for some in groups for each in some] == sources
    for some in groups:
        assert len(some) == 1 or sum(each.size for each in some) <= 100


def test_a_group_is_no_more_than_can_be_replaced_in_one_go() -> None:
    sources = [source(n) for n in range(2 * SEGMENTS_MAX + 3)]
    assert [len(some) for some in group(sources, 10**6, BIG, BIG)] == [SEGMENTS_MAX, SEGMENTS_MAX, 3]
