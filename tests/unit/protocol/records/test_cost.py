"""Which batches are checked on the event loop: ordinary ones, and never one that holds it."""

import random

import pytest

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.compression import compress
from protocol.records.cost import takes_long
from protocol.records.rules import BatchRules

NOW = 1_790_000_000_000
RULES = BatchRules()
NOISE = random.Random(1).randbytes(300_000)


def long(data, rules=RULES):
    return takes_long(b"before" + data, 6, len(data), rules)


def batch(value_bytes, count=10, codec=0):
    return build_batch([Record(0, NOW, b"k", NOISE[:value_bytes])] * count, codec=codec)


def test_plain_batch_then_by_its_count():
    assert not long(batch(10, 12_000))
    assert long(batch(10, 12_001))
    assert not long(batch(100_000))
    assert not long(b"")
    assert not long(batch(10)[:60])


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_ordinary_compressed_batch_then_quick(codec):
    assert not long(batch(1000, 12, codec))
    assert not long(build_batch([Record(0, NOW, b"k", b"words " * 20)] * 100, codec=codec))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_large_compressed_batch_then_long(codec):
    assert long(batch(300_000, 1, codec))


def test_codec_of_the_topic_then_long_beyond_a_little():
    rules = BatchRules(compression=4)
    assert long(batch(5000, 1), rules)
    assert not long(batch(500, 1), rules)
    assert not long(batch(5000, 1, codec=4), rules)


@pytest.mark.parametrize("kind", ["one frame", "many frames", "many small blocks"])
def test_zstd_bomb_then_long(kind):
    if kind == "one frame":
        section = compress(4, bytes(5 << 20))
    elif kind == "many frames":
        section = compress(4, bytes(1 << 20)) * 50
    else:
        head = compress(4, b"")[:6]
        section = head + ((1 << 3).to_bytes(3, "little") + b"x") * 70
    data = batch(1)[:61] + section
    data[22] = 4
    assert long(data)


def test_zstd_frame_that_is_broken_then_left_to_the_check():
    for section in (b"", b"junk", compress(4, NOISE[:1000])[:200]):
        data = batch(1)[:61] + section
        data[22] = 4
        assert not long(data)
