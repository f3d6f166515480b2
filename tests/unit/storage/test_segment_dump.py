import struct

from storage import segment_dump
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, append, batch, open_manager

ONE = len(batch(1))
STEM = "/logs/t-0/00000000000000000000"


def closed_log(count=10):
    files = SimFileSystem()
    manager = open_manager(files, config=LogConfig(index_interval_bytes=2 * ONE))
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for number in range(count):
        append(log, batch(1, ts=START_MS + number, producer=6, epoch=2, sequence=number))
    manager.close()
    return files


def test_a_log_is_walked_with_its_records_and_its_invalid_tail():
    files = closed_log(3)
    files.open(STEM + ".log").append([b"tail"])
    dump = segment_dump.LogDump(files, STEM + ".log")
    batches = list(dump.batches())
    assert [b.facts.base_offset for b in batches] == [0, 1, 2]
    assert all(b.valid for b in batches)
    assert [r.timestamp for b in batches for r in b.records()] == [START_MS, START_MS + 1, START_MS + 2]
    assert (dump.start_offset, dump.size - dump.valid_bytes) == (0, 4)
    dump.close()


def test_a_wrong_crc_is_told_and_the_walk_goes_on():
    files = closed_log(3)
    files.open(STEM + ".log").write_at(ONE + 30, b"\xee")
    batches = list(segment_dump.LogDump(files, STEM + ".log").batches())
    assert [b.valid for b in batches] == [True, False, True]
    limited = segment_dump.LogDump(files, STEM + ".log", max_bytes=2 * ONE)
    assert len(list(limited.batches())) == 2


def test_sound_indexes_have_their_entries():
    files = closed_log()
    offsets = segment_dump.dump_offset_index(files, STEM + ".index")
    assert offsets.sound
    assert offsets.entries == [(3, 3 * ONE), (6, 6 * ONE), (9, 9 * ONE)]
    times = segment_dump.dump_time_index(files, STEM + ".timeindex")
    assert times.sound
    assert times.entries == [(START_MS + n, n) for n in (3, 6, 9)]


def test_wrong_entries_are_named():
    files = closed_log()
    files.open(STEM + ".index").write_at(8, struct.pack(">ii", 5, 6 * ONE))
    offsets = segment_dump.dump_offset_index(files, STEM + ".index")
    assert offsets.mismatches == [(5, 6)]
    files.open(STEM + ".timeindex").write_at(12, struct.pack(">qi", START_MS + 2, 6))
    times = segment_dump.dump_time_index(files, STEM + ".timeindex")
    assert times.wrong_timestamps == [(START_MS + 2, START_MS + 6)]
    assert times.out_of_order == [(START_MS + 2, START_MS + 3)]
    files.open(STEM + ".timeindex").write_at(24, struct.pack(">qi", START_MS + 9, 99))
    assert segment_dump.dump_time_index(files, STEM + ".timeindex").not_found == [(99, -1)]
    assert not times.sound


def test_a_tail_of_zeros_ends_an_index_and_stays():
    files = closed_log()
    for suffix, size in ((".index", 8), (".timeindex", 12)):
        files.open(STEM + suffix).append([bytes(size * 20)])
    assert segment_dump.dump_offset_index(files, STEM + ".index").sound
    assert segment_dump.dump_time_index(files, STEM + ".timeindex").sound
    assert files.size(STEM + ".index") == 23 * 8
    files.open(STEM + ".index").append([b"odd"])
    assert "multiple" in segment_dump.dump_offset_index(files, STEM + ".index").problem


def test_an_empty_file_is_told():
    files = closed_log(0)
    assert segment_dump.dump_offset_index(files, STEM + ".index").empty_file
    assert segment_dump.dump_time_index(files, STEM + ".timeindex").empty_file


def test_snapshots_and_transaction_indexes():
    files = closed_log(4)
    (entry,) = segment_dump.dump_snapshot(files, "/logs/t-0/00000000000000000004.snapshot")
    assert (entry.producer_id, entry.epoch, entry.last_sequence, entry.last_offset) == (6, 2, 3, 3)
    files.write_atomic("/logs/t-0/x.txnindex", struct.pack(">hqqqq", 0, 5, 10, 20, 21) + b"cut")
    assert segment_dump.dump_txn_index(files, "/logs/t-0/x.txnindex") == [(0, 5, 10, 20, 21)]
