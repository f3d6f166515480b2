"""Frames cut from a stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ProtocolViolation
from protocol.frames import FrameSplitter, frame


def test_a_frame_is_its_size_and_its_parts() -> None:
    assert frame(b"ab", memoryview(b"c")) == b"\0\0\0\x03abc"
    assert frame() == b"\0\0\0\0"


@given(st.lists(st.binary(max_size=20), max_size=6), st.integers(1, 9))
def test_frames_come_back_however_the_stream_is_cut(payloads: list[bytes], step: int) -> None:
    stream = b"".join(frame(payload) for payload in payloads)
    splitter = FrameSplitter()
    found = []
    for at in range(0, len(stream), step):
        found += splitter.feed(stream[at : at + step])
    assert found == payloads
    assert splitter.pending_bytes == 0


def test_an_unfinished_frame_waits() -> None:
    splitter = FrameSplitter()
    assert splitter.feed(b"\0\0\0\x03ab") == []
    assert splitter.pending_bytes == 6
    assert splitter.feed(memoryview(b"c\0\0")) == [b"abc"]
    assert splitter.pending_bytes == 2


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x0b", b"\x16\x03\x01\x02"])
def test_sizes_out_of_range_are_refused(size: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="a frame of"):
        FrameSplitter(max_bytes=10).feed(size)


def test_the_largest_size_is_accepted() -> None:
    assert FrameSplitter(max_bytes=10).feed(b"\0\0\0\x0a" + bytes(10)) == [bytes(10)]
