import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.crc import crc32c
from storage.errors import CorruptCheckpoint
from storage.producers.entry import ProducerEntry
from storage.producers.snapshot import decode_snapshot, encode_snapshot
from tests.support.logs import facts


def test_the_bytes_are_version_crc_count_and_46_an_entry():
    entry = ProducerEntry(5, 1, [(3, 4, 99, 1, 1000)], 2, 1000, 98)
    data = encode_snapshot([entry])
    body = struct.pack(">iqhiqiqiq", 1, 5, 1, 4, 99, 1, 1000, 2, 98)
    assert data == struct.pack(">hI", 1, crc32c(body)) + body
    assert len(encode_snapshot([])) == 10


def test_only_the_last_batch_is_kept():
    entry = ProducerEntry(5, 1, [(0, 2, 97, 2, 900), (3, 4, 99, 1, 1000)], -1, 1000)
    (read,) = decode_snapshot(encode_snapshot([entry]))
    assert read.batches == [(3, 4, 99, 1, 1000)]


def test_a_producer_without_batches_keeps_its_epoch_and_time():
    (read,) = decode_snapshot(encode_snapshot([ProducerEntry(5, 3, [], 7, 1234)]))
    assert facts(read) == (5, 3, (), 7, 1234, -1)


@pytest.mark.parametrize("damage", ["empty", "short", "version", "bit", "long"])
def test_damage_is_noticed(damage):
    data = bytearray(encode_snapshot([ProducerEntry(5, 1, [(3, 4, 99, 1, 1000)], 2, 1000)]))
    if damage == "empty":
        data.clear()
    elif damage == "short":
        del data[-1]
    elif damage == "version":
        data[1] = 2
    elif damage == "bit":
        data[20] ^= 1
    else:
        data += b"x"
    with pytest.raises(CorruptCheckpoint):
        decode_snapshot(bytes(data))


numbers = st.integers(0, (1 << 31) - 1)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 1 << 62),
            st.integers(0, 32767),
            numbers,
            st.integers(0, 1 << 62),
            numbers,
            st.integers(-1, 1 << 62),
        )
    )
)
def test_what_is_written_is_read(rows):
    entries = [
        ProducerEntry(pid, epoch, [((last - delta) % (1 << 31), last, offset, delta, ts)], -1, ts)
        for pid, epoch, last, offset, delta, ts in rows
    ]
    read = decode_snapshot(encode_snapshot(entries))
    assert [facts(e) for e in read] == [facts(e) for e in entries]
