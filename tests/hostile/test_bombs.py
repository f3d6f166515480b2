"""Decompression bombs of 256 MiB wherever the broker must decompress: refused or streamed (promises.md).

Each is made once, in pieces, so that the test itself needs no such memory.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest

from protocol.records.batch import Record
from protocol.records.builder import append_record, wrap_section
from protocol.records.compression import GZIP, LZ4, SNAPPY, ZSTD, compressor
from protocol.records.legacy import build_message_set
from protocol.records.varints import append_varint
from tests.hostile.attacks import at_once
from tests.hostile.victim import MIB, NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.wire_client import WireClient

BOMB_BYTES = 256 * MIB
GROWTH_BYTES = 64 * MIB
VALUE_BYTES = 64 << 10
TIME = 1_700_000_000_000
PATIENCE_S = 180.0  # a lookup reads 256 MiB, and four of them share the machine with other tests
REFUSED = {10, 87, -1}


def one_record() -> Iterator[bytes]:
    """A single record that takes all the bytes."""
    body = bytearray(b"\0\0\0\x02k")
    append_varint(body, BOMB_BYTES)
    head = bytearray()
    append_varint(head, len(body) + BOMB_BYTES + 1)
    yield bytes(head + body)
    for _ in range(BOMB_BYTES // MIB):
        yield bytes(MIB)
    yield b"\0"


def many_records() -> Iterator[bytes]:
    """Sound records of 64 KiB."""
    for index in range(BOMB_BYTES // VALUE_BYTES):
        out = bytearray()
        append_record(out, Record(index, TIME, b"k", bytes(VALUE_BYTES), ()), 0, index)
        yield bytes(out)


@functools.cache
def bomb(codec: int, single: bool) -> bytes:
    stream = compressor(codec)
    section = bytearray()
    count = 0
    for piece in one_record() if single else many_records():
        section += stream.compress(piece)
        count += 1
    section += stream.flush()
    count = 1 if single else count
    return bytes(
        wrap_section(
            section,
            attributes=codec,
            last_offset_delta=count - 1,
            base_timestamp=TIME,
            max_timestamp=TIME,
            count=count,
        )
    )


def longest_work_ms(victim: Victim) -> int:
    """What the broker tells at its end of how long the loop was held up: the processor time of it."""
    victim.broker.stop()
    found = re.search(r"held up for at most \d+ ms, of which it worked (\d+) ms", victim.broker.output())
    assert found is not None
    victim.broker.start()
    return int(found[1])


TOPICS = {
    "plain": {},
    "compacted": {"cleanup_policy": "compact"},
    "uncompressed": {"compression_type": "uncompressed"},
    "gzip": {"compression_type": "gzip"},
}


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_produced_bombs(victim: Victim, codec: int) -> None:
    """Snappy and LZ4 cannot hide so much in 1 MiB: they are produced to topics that take larger batches."""
    batches = [bomb(codec, single) for single in (True, False)]
    larger = {"max_message_bytes": str(max(map(len, batches)))} if codec in (SNAPPY, LZ4) else {}
    came = max(map(len, batches))
    # What really came: receive buffers, copy, tail. Half of it was measured.
    growth = GROWTH_BYTES + (14 * came if larger else 0)
    with victim.wire() as wire:
        for name, configs in TOPICS.items():
            wire.create_topic(name, **configs, **larger)
        with victim.normal_client() as client, victim.memory() as memory:
            for name in TOPICS:
                codes = [wire.produce(name, batch).error_code for batch in batches]
                assert codes[0] in REFUSED, (name, codes)
                assert codes[1] == (10 if name == "uncompressed" else 0), (name, codes)
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < growth, memory
    assert longest_work_ms(victim) < 1000


def test_lookups_in_stored_bombs(victim: Victim) -> None:
    """By time, for the largest time, and by old clients, many of them at once."""
    with victim.wire() as wire:
        wire.create_topic("t")
        assert wire.produce("t", bomb(GZIP, False)).error_code == 0
        last = BOMB_BYTES // VALUE_BYTES - 1

        def ask() -> tuple[int, int]:
            with WireClient(victim.address, timeout_s=PATIENCE_S) as other:
                by_time = other.list_offset("t", TIME).offset
                largest = other.list_offset("t", -3).offset
                old = other.fetch("t", last, version=2, partition_max_bytes=1000)
                assert old.error_code == 0
                return by_time, largest

        with victim.normal_client() as client, victim.memory() as memory:
            assert at_once(4, ask) == [(0, 0)] * 4
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < GROWTH_BYTES, memory


def test_old_message_sets_of_tiny_messages(victim: Victim) -> None:
    """Hundreds of thousands of messages, plain or in a wrapper that a compressor makes small."""
    one = bytes(build_message_set([Record(0, TIME, b"", b"", ())], 1))
    plain = [one * (90 * MIB // len(one)), one * (4_100_000 // len(one))]
    wrapped = build_message_set([Record(i, TIME, b"", b"", ()) for i in range(300_000)], 1, codec=GZIP)
    with victim.wire() as wire:
        wire.create_topic("t")
        wire.create_topic("large", max_message_bytes="10000000")
        with victim.normal_client() as client, victim.memory() as memory:
            for data in plain:
                assert wire.produce("t", data, version=2).error_code == 10
            assert wire.produce("large", wrapped, version=2).error_code == 0
        assert wire.list_offset("large", -1).offset == 300_000
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < STRANGER_BYTES, memory


def test_batches_far_above_the_limit_are_refused_at_a_glance(victim: Victim) -> None:
    """95 MiB in one batch: nothing is copied, decompressed or summed up."""
    with victim.wire() as wire:
        wire.create_topic("t")
        with victim.normal_client() as client, victim.memory() as memory:
            for codec in (0, GZIP, SNAPPY, LZ4, ZSTD):
                batch = wrap_section(
                    bytes(95 * MIB),
                    attributes=codec,
                    last_offset_delta=0,
                    base_timestamp=TIME,
                    max_timestamp=TIME,
                    count=1,
                )
                assert wire.produce("t", batch).error_code == 10
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < STRANGER_BYTES, memory
