import pytest

from storage.segment import Segment
from storage.segments import Segments
from tests.simulation.files import SimFileSystem


def filled(*bases):
    files = SimFileSystem()
    files.make_dirs("/p")
    segments = Segments()
    for base in bases:
        segments.add(Segment(files, "/p", base, now_ms=0, create=True))
    return segments


def test_they_are_ordered_whatever_the_order_of_adding():
    segments = filled(20, 0, 10)
    assert segments.bases() == [0, 10, 20]
    assert segments.first.base_offset == 0
    assert segments.active.base_offset == 20
    assert len(segments) == 3


def test_floor_after_and_from_offset():
    segments = filled(5, 10, 20)
    assert segments.floor(4) is None
    assert segments.floor(10).base_offset == segments.floor(19).base_offset == 10
    assert segments.after(segments.first).base_offset == 10
    assert segments.after(segments.active) is None
    assert [s.base_offset for s in segments.from_offset(12)] == [10, 20]
    assert [s.base_offset for s in segments.from_offset(0)] == [5, 10, 20]


def test_a_base_is_there_once():
    segments = filled(5)
    with pytest.raises(ValueError, match="already"):
        segments.add(segments.first)
    segments.remove(segments.first)
    assert len(segments) == 0
