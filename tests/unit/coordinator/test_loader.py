"""Replaying a partition: batches of every kind, in bounded steps."""

import asyncio

import pytest

from coordinator.loader import RECORDS_PER_TURN, Replay, load, read_fields
from protocol.errors import InvalidRecords, MalformedMessage
from protocol.records.batch import HEADER_SIZE, Record, records
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from protocol.records.legacy import build_message_set
from protocol.records.rules import trusted_batch
from runtime.pieces import Pieces
from tests.unit.coordinator.memory_topic import MemoryTopic

Seen = list[tuple[bytes, bytes | None, int, int] | tuple[int, bool]]


class Recorder:
    """A shard that writes down what it is given."""

    def __init__(self) -> None:
        self.seen: Seen = []

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        self.seen.append((key, value, offset, producer_id))

    def replay_end_marker(self, producer_id: int, commit: bool) -> None:
        self.seen.append((producer_id, commit))

    def on_loaded(self, now_ms: int) -> None:
        self.seen.append((now_ms, True))

    def on_unloaded(self) -> None:
        self.seen.clear()


def replayed(data: bytes, start: int = 0) -> Seen:
    shard = Recorder()
    for _ in Replay(shard, start).steps(data):
        pass
    return shard.seen


def batch(base_offset: int, *values: bytes | None, **options: int | bool) -> bytearray:
    return build_batch([Record(0, 1, b"k", value) for value in values], base_offset=base_offset, **options)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_every_record_arrives_in_order_whatever_the_codec(codec: int) -> None:
    data = bytes(batch(0, b"a", None, b"c" * 300, codec=codec) + batch(3, b"d"))
    assert replayed(data) == [
        (b"k", b"a", 0, -1), (b"k", None, 1, -1), (b"k", b"c" * 300, 2, -1), (b"k", b"d", 3, -1)
    ]  # fmt: skip


def test_transactions_come_with_their_producer_and_their_end() -> None:
    data = batch(0, b"a", producer_id=7, producer_epoch=0, transactional=True)
    data += batch(1, b"b", producer_id=9, producer_epoch=0, base_sequence=0)
    for offset, commit in ((2, True), (3, False)):
        data += build_end_marker(
            commit, producer_id=7, producer_epoch=0, coordinator_epoch=1, timestamp=1, base_offset=offset
        )
    assert replayed(bytes(data)) == [(b"k", b"a", 0, 7), (b"k", b"b", 1, -1), (7, True), (7, False)]


def test_old_messages_are_read() -> None:
    data = build_message_set([Record(5, 1, b"k", b"v"), Record(6, 1, b"k", None)], magic=1)
    assert replayed(bytes(data)) == [(b"k", b"v", 5, -1), (b"k", None, 6, -1)]


def test_what_lies_before_the_start_is_left_out() -> None:
    data = bytes(batch(0, b"a", b"b", b"c"))
    assert replayed(data, 2) == [(b"k", b"c", 2, -1)]


def test_fields_are_read_as_the_record_reader_reads_them() -> None:
    wanted = [
        Record(0, 5, b"k", b"v"),
        Record(1, 5 + 10**6, b"k" * 63, b"v" * 64),
        Record(2, 5 - 10**12, b"k" * 70_000, None, (("name", b"x"),)),
        Record(3, 5, None, b""),
    ]
    wanted += [Record(number, 5, b"k", b"v") for number in range(4, 9000)]
    data = bytes(build_batch(wanted))
    section, at, found = data[HEADER_SIZE:], 0, []
    while at < len(section):
        at, delta, key, value = read_fields(section, at)
        found.append((delta, key, value))
    assert found == [(each.offset, each.key, each.value) for each in records(data)]


def test_long_batches_are_applied_in_steps() -> None:
    shard = Recorder()
    replay = Replay(shard, 0)
    data = bytes(batch(0, *[b"v"] * (3 * RECORDS_PER_TURN + 5)))
    counts = [len(shard.seen) for _ in replay.steps(data)]
    assert counts == [RECORDS_PER_TURN, 2 * RECORDS_PER_TURN, 3 * RECORDS_PER_TURN]
    assert replay.records == 3 * RECORDS_PER_TURN + 5
    assert replay.next_offset == replay.records


def test_many_small_batches_are_applied_in_steps() -> None:
    shard = Recorder()
    data = b"".join(bytes(batch(number, b"v")) for number in range(2 * RECORDS_PER_TURN + 1))
    assert sum(1 for _ in Replay(shard, 0).steps(data)) == 2


@pytest.mark.parametrize("cut", range(1, 12))
def test_records_that_do_not_parse_end_the_load(cut: int) -> None:
    data = bytearray(batch(0, b"value"))
    data = data[:-cut]
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    with pytest.raises(InvalidRecords):
        replayed(bytes(data))


@pytest.mark.parametrize("at", [21, 60, -1])
def test_bytes_that_are_not_what_was_written_end_the_load(at: int) -> None:
    data = bytearray(batch(0, b"value"))
    data[at] ^= 1
    with pytest.raises(InvalidRecords, match="offset 0 is damaged"):
        replayed(bytes(data))


class Picky(Recorder):
    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        if value == b"junk":
            raise MalformedMessage("junk")
        super().replay(key, value, offset, producer_id)


def test_whole_records_that_mean_nothing_are_passed_over() -> None:
    shard = Picky()
    replay = Replay(shard, 0)
    data = batch(0, b"a", b"junk", b"b") + batch(3, bytes(40 << 20), codec=1) + batch(4, b"junk", b"c")
    for _ in replay.steps(bytes(data)):
        pass
    assert [entry[2] for entry in shard.seen] == [0, 2, 5]
    assert (replay.skipped, replay.next_offset) == (3, 6)
    assert replay.reason == "the first at offset 1: junk"


def test_a_load_reads_on_until_the_end() -> None:
    topic = MemoryTopic()
    topic.starts[0] = 100
    for _ in range(30):
        topic.append(0, trusted_batch(batch(0, b"a", b"b")), 0, lambda error: None)
    shard = Recorder()
    done = asyncio.run(load(topic, 0, shard, lambda: True, 200))
    assert done is not None
    assert (done.records, done.next_offset) == (60, 160)
    assert [entry[2] for entry in shard.seen] == list(range(100, 160))
    assert topic.reads > 5


def test_a_load_that_is_no_longer_wanted_stops_between_steps() -> None:
    topic = MemoryTopic()
    topic.append(0, trusted_batch(batch(0, *[b"v"] * (5 * RECORDS_PER_TURN))), 0, lambda error: None)
    shard = Recorder()
    assert asyncio.run(load(topic, 0, shard, lambda: len(shard.seen) < RECORDS_PER_TURN)) is None
    assert len(shard.seen) == RECORDS_PER_TURN


def test_an_empty_partition_is_loaded_at_once() -> None:
    topic = MemoryTopic()
    done = asyncio.run(load(topic, 0, Recorder(), lambda: True))
    assert done is not None
    assert done.records == topic.reads == 0


def test_loads_that_share_turns_do_one_piece_in_a_pass() -> None:
    """So many of them hold the loop for no longer at a time than one."""
    count = 3
    whole = RECORDS_PER_TURN * count
    topics = [MemoryTopic() for _ in range(4)]
    for topic in topics:
        topic.append(0, trusted_batch(batch(0, *[b"v"] * whole)), 0, lambda error: None)
    shards = [Recorder() for _ in topics]
    per_pass: list[int] = []

    async def main() -> None:
        pieces = Pieces()
        loads = [
            asyncio.ensure_future(load(topic, 0, shard, lambda: True, turn=pieces.turn))
            for topic, shard in zip(topics, shards, strict=True)
        ]
        seen = 0
        while not all(each.done() for each in loads):
            await asyncio.sleep(0)
            now = sum(len(shard.seen) for shard in shards)
            per_pass.append(now - seen)
            seen = now
        assert seen == whole * len(topics)

    asyncio.run(main())
    assert max(per_pass) == RECORDS_PER_TURN
