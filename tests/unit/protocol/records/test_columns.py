"""Runs by columns: what counts as a run, and where it ends. The verdicts are proved in test_walk.py."""

import pytest

from protocol.records.batch import Record
from protocol.records.builder import append_record
from protocol.records.columns import LEAST_RUN, RunFinder, Template


def section_of(count, value=b"v" * 30, time=0, first=0, headers=(), key=b"key"):
    out = bytearray()
    for index in range(first, first + count):
        append_record(out, Record(0, 0, key, value, headers), time + index % 5, index)
    return out


def run_in(section, count, index=1, finder=None):
    stride = len(section) // count
    return (finder or RunFinder()).count_run(section, 0, len(section), stride, index, index + count - 1)


def test_template_then_places_of_lengths_times_and_offsets():
    section = section_of(1, headers=(("ab", None), ("c", b"xyz")))
    shape = Template(section, 0, len(section))
    key_at = 4
    value_at = key_at + 1 + 3
    headers_at = value_at + 1 + 30
    assert shape.fixed == [
        0, key_at, value_at, headers_at, headers_at + 1, headers_at + 4, headers_at + 5, headers_at + 7,
    ]  # fmt: skip
    assert (shape.time_at, shape.time_width, shape.offset_at, shape.offset_width) == (2, 1, 3, 1)
    assert not shape.key_is_null
    assert Template(section_of(1, key=None), 0, 40).key_is_null


def test_equal_records_then_one_run_with_largest_time():
    assert run_in(section_of(60), 60) == (59, 8, False)
    assert run_in(section_of(60, key=None, time=900), 60) == (59, 2 * 904, True)


def test_few_records_then_no_run():
    assert run_in(section_of(LEAST_RUN), LEAST_RUN) == (0, 0, False)
    assert run_in(section_of(LEAST_RUN + 1), LEAST_RUN + 1)[0] == LEAST_RUN


def test_reach_then_grows_while_runs_hold():
    section = section_of(3000, first=64)
    finder = RunFinder()
    assert run_in(section, 3000, 65, finder)[0] == 64
    assert run_in(section, 3000, 65, finder)[0] == 256
    assert run_in(section, 3000, 65, finder)[0] == 1024
    section[20 * (len(section) // 3000)] = 0
    assert run_in(section, 3000, 65, finder)[0] == 19
    assert finder.reach == 64


@pytest.mark.parametrize("place", range(4))
def test_run_up_to_the_first_other_length(place):
    section = section_of(50, headers=(("h", b"x"),))
    shape = Template(section, 0, len(section) // 50)
    section[33 * (len(section) // 50) + shape.fixed[place]] ^= 2
    assert run_in(section, 50)[0] == 32


def test_time_of_another_width_or_offset_out_of_sequence_then_no_run():
    section = section_of(50)
    stride = len(section) // 50
    for place, byte in ((2, 0x80), (3, 0)):
        changed = section.copy()
        changed[30 * stride + place] = byte
        assert run_in(changed, 50) == (0, 0, False)


@pytest.mark.parametrize("first", [0, 1, 63, 64, 100, 8000, 8191, 8192, 9000, 16383, 16384, 1_000_000])
def test_offset_deltas_of_any_width_then_followed_to_where_the_width_or_table_ends(first):
    count = 40
    section = section_of(count, first=first)
    template = section_of(1, first=first)
    widths = [len(section_of(1, first=index)) for index in range(first, first + count)]
    same = next((i for i, width in enumerate(widths) if width != len(template)), count)
    if first >= 8192:
        same = min(same, 8192 - (first + 1) % 8192 + 1)
    run, _, _ = RunFinder().count_run(section, 0, len(section), len(template), first + 1, first + count)
    assert run == (same - 1 if same - 1 >= LEAST_RUN else run)
    assert run <= same - 1


def test_times_of_many_bytes_then_largest_found():
    out = bytearray()
    times = [(1 << 40) + 13 * i % 101 for i in range(40)]
    for index, time in enumerate(times):
        append_record(out, Record(0, 0, b"k", b"v"), time, index)
    assert run_in(out, 40) == (39, 2 * max(times[1:]), False)


def test_more_headers_than_a_template_holds_then_no_run():
    section = section_of(30, headers=tuple(("h", b"x") for _ in range(30)))
    assert run_in(section, 30) == (0, 0, False)
