import struct
import zlib

import pytest

from storage import time_lookup
from storage.errors import CorruptLog
from storage.log_config import LogConfig
from storage.time_lookup import EARLIEST, LATEST
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, append, batch, open_manager

ONE = len(batch(1))


def new_log(**config):
    clock = FixedClock()
    files = SimFileSystem(now_ms=clock.now_ms)
    log = open_manager(files, config=LogConfig(**config), clock=clock).get_or_create("t", 0, TOPIC_ID)
    return log, clock


def asked(log, timestamp, upto=None):
    found = log.offset_for_timestamp(timestamp, log.end_offset if upto is None else upto)
    return found and (found.offset, found.timestamp)


@pytest.mark.parametrize("codec", range(5))
def test_the_first_record_not_older_is_found_inside_batches_of_any_codec(codec):
    log, _ = new_log()
    append(log, batch(4, ts=[2, 4, 6, 8], codec=codec))
    append(log, batch(2, ts=[10, 12], codec=codec), epoch=3)
    assert [asked(log, t) for t in (0, 2, 3, 8, 9, 12, 13)] == [
        (0, 2),
        (0, 2),
        (1, 4),
        (3, 8),
        (4, 10),
        (5, 12),
        None,
    ]
    assert log.offset_for_timestamp(11, 6).leader_epoch == 3


def test_times_may_go_back():
    log, _ = new_log(index_interval_bytes=0)
    for timestamp in (50, 30, 40, 60, 20):
        append(log, batch(1, ts=timestamp))
    assert asked(log, 25) == (0, 50)
    assert asked(log, 55) == (3, 60)
    assert asked(log, 61) is None


def test_a_hit_at_or_beyond_the_limit_is_none():
    log, _ = new_log()
    append(log, batch(3, ts=[1, 2, 3]))
    assert asked(log, 3, upto=2) is None
    assert asked(log, 2, upto=2) == (1, 2)
    assert log.max_timestamp_offset(2) is None


def test_deleted_records_are_not_found():
    log, _ = new_log(segment_bytes=3 * ONE)
    for number in range(9):
        append(log, batch(1, ts=100 - number))
    log.delete_records(1)
    assert asked(log, 0) == (1, 99)
    assert asked(log, 100) is None
    log.delete_records(4)
    assert asked(log, 97) is None
    assert asked(log, 96) == (4, 96)


def test_the_greatest_timestamp_is_that_of_the_first_record_that_has_it():
    log, _ = new_log(segment_bytes=4 * ONE)
    for times in ([5, 90, 7], [90, 1, 2], [3, 4, 5], [6, 6, 6]):
        append(log, batch(3, ts=times, codec=1))
    found = log.max_timestamp_offset(log.end_offset)
    assert (found.offset, found.timestamp) == (1, 90)
    log.delete_records(2)
    assert log.max_timestamp_offset(12).offset == 3
    log.delete_records(4)
    assert log.max_timestamp_offset(12)[:2] == (9, 6)


def test_nothing_is_found_in_an_empty_log_or_without_timestamps():
    log, _ = new_log()
    assert asked(log, 0) is None
    assert log.max_timestamp_offset(0) is None
    append(log, batch(2, ts=-1))
    assert asked(log, 0) is None
    assert log.max_timestamp_offset(2) is None


def test_sealed_segments_answer_from_their_files():
    log, _ = new_log(segment_bytes=200 * ONE, index_interval_bytes=ONE)
    for number in range(1000):
        append(log, batch(1, ts=START_MS + number * 10))
    for number in (0, 1, 199, 200, 501, 999):
        assert asked(log, START_MS + number * 10) == (number, START_MS + number * 10)
        assert asked(log, START_MS + number * 10 - 9) == (number, START_MS + number * 10)


def legacy(magic, offset, timestamp=-1):
    body = (
        struct.pack(">bb", magic, 0)
        + (struct.pack(">q", timestamp) if magic else b"")
        + struct.pack(">iii", -1, 1, 0)[:9]
    )
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def test_old_formats_in_old_segments_are_searched_too():
    log, _ = new_log()
    log.append_as_follower(
        legacy(0, 0) + legacy(1, 1, 70) + legacy(1, 2, 80) + bytes(batch(1, base=3, ts=90)), 0
    )
    assert asked(log, 0) == (1, 70)
    assert asked(log, 75) == (2, 80)
    assert asked(log, 85) == (3, 90)
    assert int.from_bytes(log.read(1, 1 << 20, 4).to_bytes()[:8], "big") == 1


def test_unreadable_records_are_told_apart_from_nothing():
    log, _ = new_log()
    append(log, batch(2, ts=[1, 2], codec=1))
    log.handle.write_at(70, b"\xff\xff\xff")
    with pytest.raises(CorruptLog):
        asked(log, 2)


def test_listing_in_its_oldest_form():
    log, clock = new_log(segment_bytes=3 * ONE)
    for _ in range(8):
        append(log, batch(1))
        clock.ms += 10

    def before(timestamp, count):
        return log.segment_start_offsets_before(timestamp, count, clock.ms)

    assert before(LATEST, 10) == [8, 6, 3, 0]
    assert before(LATEST, 2) == [8, 6]
    assert before(LATEST, 0) == []
    assert before(EARLIEST, 10) == [0]
    assert before(EARLIEST, 0) == []
    assert before(clock.ms, 10) == before(clock.ms + 5, 10) == [8, 6, 3, 0]
    assert before(clock.ms - 1, 10) == [6, 3, 0]
    assert before(START_MS + 65, 10) == [3, 0]
    assert before(START_MS - 1, 10) == []
    log.move_start(4)
    assert before(LATEST, 10) == [8, 6, 4, 4]
    assert before(EARLIEST, 1) == [4]


def test_a_search_on_another_thread_looks_again_where_segments_were_replaced():
    log = new_log()[0]
    seen = []

    def search():
        seen.append(len(seen))
        if len(seen) == 1:
            log.local.segments.changes += 1
            raise FileNotFoundError("the segment got another name")
        if len(seen) == 2:
            log.local.segments.changes += 1
        return len(seen)

    assert time_lookup._steady(log, search) == 3


def test_a_search_that_fails_for_other_reasons_says_so():
    log = new_log()[0]

    def search():
        raise FileNotFoundError("no such file")

    with pytest.raises(FileNotFoundError):
        time_lookup._steady(log, search)
