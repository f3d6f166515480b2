import errno
import logging

import pytest

from storage import segment_dump
from storage.errors import InconsistentDirectory
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import (
    START_MS,
    TOPIC_ID,
    append,
    batch,
    facts,
    marker,
    open_manager,
    read_offsets,
    read_records,
)

ONE = len(batch(1))
CONFIG = LogConfig(segment_bytes=5 * ONE, index_interval_bytes=ONE)
DIR = "/logs/t-0"


def filled(count=12, config=CONFIG, close=False):
    files = SimFileSystem()
    manager = open_manager(files, config=config)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for number in range(count):
        append(log, batch(1, ts=START_MS + number, producer=3, epoch=0, sequence=number), epoch=number // 5)
    if close:
        manager.close()
    else:
        manager.abandon()
    return files


def reopened(files, config=CONFIG):
    return open_manager(files, config=config).get("t", 0)


def path(base, suffix):
    return f"{DIR}/{base:020d}{suffix}"


def test_after_a_clean_stop_everything_is_as_it_was():
    files = filled(close=True)
    log = reopened(files)
    assert (log.start_offset, log.end_offset, log.high_watermark, log.recovery_point) == (0, 12, 12, 12)
    assert log.local.segments.bases() == [0, 5, 10]
    assert read_offsets(log) == list(range(12))
    assert log.producers.entries[3].last_sequence == 11
    assert log.leader_epochs.entries == [(0, 0), (1, 5), (2, 10)]
    assert append(log, batch(1), epoch=2) == 12


def test_a_clean_stop_leaves_what_kafka_needs():
    files = filled(close=True)
    names = files.list_dir(DIR)
    for base in (0, 5, 10):
        assert f"{base:020d}.index" in names
        assert f"{base:020d}.timeindex" in names
        times = segment_dump.dump_time_index(files, path(base, ".timeindex"))
        assert times.sound
        assert times.entries[-1] == (START_MS + min(base + 4, 11), min(base + 4, 11))
        assert segment_dump.dump_offset_index(files, path(base, ".index")).sound
    assert "00000000000000000012.snapshot" in names
    assert files.read_bytes("/logs/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":-1}'
    assert files.read_bytes("/logs/recovery-point-offset-checkpoint") == b"0\n1\nt 0 12\n"
    assert files.read_bytes("/logs/replication-offset-checkpoint") == b"0\n1\nt 0 12\n"
    assert files.read_bytes("/logs/log-start-offset-checkpoint") == b"0\n0\n"


@pytest.mark.parametrize("junk", [b"x", bytes(100), b"garbage" * 30, bytes(batch(1, base=12))[:-1]])
def test_a_torn_tail_is_cut(junk):
    files = filled()
    files.open(path(10, ".log")).append([junk])
    log = reopened(files)
    assert log.end_offset == 12
    assert files.size(path(10, ".log")) == 2 * ONE
    assert append(log, batch(1), epoch=9) == 12
    assert read_offsets(log) == list(range(13))


@pytest.mark.parametrize("at", [2, 7, 11])
def test_a_wrong_byte_cuts_the_log_there_and_drops_later_segments(at):
    files = filled()
    base = at // 5 * 5
    files.open(path(base, ".log")).write_at((at - base) * ONE + 40, b"\xee")
    log = reopened(files)
    assert log.end_offset == at
    assert read_offsets(log) == list(range(at))
    assert log.producers.entries[3].last_sequence == at - 1
    assert [name for name in files.list_dir(DIR) if name.endswith(".log")] == [
        f"{b:020d}.log" for b in range(0, base + 1, 5)
    ]


def test_a_batch_whose_offset_goes_back_cuts_the_log():
    files = filled(3)
    files.open(path(0, ".log")).append([batch(1, base=1)])
    assert reopened(files).end_offset == 3


def test_garbage_in_the_indexes_is_rebuilt():
    files = filled()
    for base in (0, 5, 10):
        for suffix in (".index", ".timeindex"):
            files.write_atomic(path(base, suffix), b"garbage!" * 9)
    log = reopened(files)
    for offset in range(12):
        found = log.offset_for_timestamp(START_MS + offset, 12)
        assert found.offset == offset
        assert int.from_bytes(log.read(offset, 1, 12).to_bytes()[:8], "big") == offset
    log.flush()
    for base in (0, 5, 10):
        assert segment_dump.dump_offset_index(files, path(base, ".index")).sound


def test_recovery_rebuilds_the_index_that_the_appends_made():
    config = LogConfig(index_interval_bytes=3 * ONE)
    files = filled(40, config, close=True)
    before = {s: files.read_bytes(path(0, s)) for s in (".index", ".timeindex")}
    files.remove("/logs/.kafka_cleanshutdown")
    files.remove("/logs/recovery-point-offset-checkpoint")
    for suffix in before:
        files.remove(path(0, suffix))
    open_manager(files, config=config).close()
    assert {s: files.read_bytes(path(0, s)) for s in before} == before


def test_a_missing_index_after_a_clean_stop_is_rebuilt():
    files = filled(close=True)
    before = files.read_bytes(path(5, ".index"))
    files.remove(path(5, ".index"))
    files.remove(path(5, ".timeindex"))
    manager = open_manager(files, config=CONFIG)
    assert read_offsets(manager.get("t", 0)) == list(range(12))
    manager.close()
    assert files.read_bytes(path(5, ".index")) == before


def test_repairing_an_index_leaves_later_segments_and_snapshots_alone():
    files = filled(close=True)
    later = {n: files.read_bytes(f"{DIR}/{n}") for n in files.list_dir(DIR) if n[:20] > f"{0:020d}"}
    files.open(path(0, ".index")).append([b"x"])
    log = reopened(files)
    assert read_offsets(log) == list(range(12))
    assert later.items() <= {n: files.read_bytes(f"{DIR}/{n}") for n in files.list_dir(DIR)}.items()
    assert log.producers.entries[3].last_sequence == 11


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_damaged_index_below_the_recovery_point_is_made_anew_after_a_crash(suffix):
    files = filled()
    files.write_atomic("/logs/recovery-point-offset-checkpoint", b"0\n1\nt 0 10\n")
    whole = files.read_bytes(path(0, suffix))
    files.write_atomic(path(0, suffix), b"garbage!" * 9)
    files.fail_next("rename", errno.EIO, suffix)  # and so it is when the repair is interrupted
    files.make_dirs("/other")
    assert open_manager(files, ("/logs", "/other"), CONFIG).get("t", 0) is None
    reopened(unlocked(files))
    assert files.read_bytes(path(0, suffix)) == whole


def unlocked(files):
    files._locked.clear()
    return files


def test_damage_below_the_recovery_point_costs_only_what_is_damaged(caplog):
    caplog.set_level(logging.WARNING, "storage")
    files = filled(close=True)
    files.open(path(0, ".log")).write_at(2 * ONE + 40, b"\xee")
    files.remove(path(0, ".index"))
    log = reopened(files)
    assert read_offsets(log) == [0, 1, *range(5, 12)]
    assert f"cut {3 * ONE} bytes at position {2 * ONE}, offset 2: wrong CRC" in caplog.text
    assert log.offset_for_timestamp(START_MS + 3, 12).offset == 5


def test_batches_that_are_damaged_below_the_recovery_point_do_not_end_the_start():
    files = filled()
    files.write_atomic("/logs/recovery-point-offset-checkpoint", b"0\n1\nt 0 10\n")
    files.open(path(0, ".log")).write_at(ONE, bytes(ONE))
    for name in files.list_dir(DIR):
        if name.endswith(".snapshot"):
            files.remove(f"{DIR}/{name}")
    log = reopened(files)
    assert log.producers.entries[3].last_sequence == 11
    assert append(log, batch(1, producer=3, epoch=0, sequence=12), epoch=2) == 12


def test_segments_behind_a_cut_do_not_come_back():
    files = filled()
    files.open(path(5, ".log")).write_at(40, b"\xee")
    log = reopened(files)
    assert log.end_offset == 5
    append(log, batch(1), epoch=9)
    assert reopened(files.crash(lambda path, unsynced: unsynced)).end_offset == 6


def test_aborted_transactions_are_indexed_anew():
    files = filled(2)
    manager = open_manager(files, config=CONFIG)
    log = manager.get("t", 0)
    for number in range(4):
        first = 2 + 3 * number
        data = bytes(batch(2, base=first, producer=8, epoch=1, sequence=2 * number, transactional=True))
        data += bytes(marker(8, 1, commit=number % 2 == 0, base=first + 2))
        log.append_as_follower(data, START_MS)
    log.set_high_watermark(14)
    told = log.aborted(0, 14)
    assert [each.first_offset for each in told] == [5, 11]
    manager.close()
    for name in files.list_dir(DIR):
        if name.endswith((".index", ".txnindex")):
            files.remove(f"{DIR}/{name}")
    again = reopened(files)
    assert again.aborted(0, 14) == told
    assert again.last_stable_offset == 14


def test_an_end_that_is_no_batch_after_a_clean_stop_is_cut_as_after_a_crash(caplog):
    caplog.set_level(logging.WARNING, "storage")  # another test has raised it
    files = filled(close=True)
    files.open(path(10, ".log")).write_at(ONE, bytes(ONE))
    log = reopened(files)
    assert read_offsets(log) == list(range(11))
    assert (log.start_offset, log.end_offset) == (0, 11)
    assert "was whole when it was closed" in caplog.text
    assert append(log, batch(1), epoch=2) == 11


def test_segments_below_the_recovery_point_are_trusted():
    files = filled()
    files.write_atomic("/logs/recovery-point-offset-checkpoint", b"0\n1\nt 0 10\n")
    files.open(path(0, ".log")).write_at(ONE + 40, b"\xee")
    log = reopened(files)
    assert log.end_offset == 12
    assert log.recovery_point == 10
    log.flush()
    assert log.recovery_point == 12


def test_epochs_are_rebuilt_from_the_batches():
    files = filled(1)
    files.remove(f"{DIR}/leader-epoch-checkpoint")
    files.remove(path(0, ".log"))
    parts = [batch(1, base=104 + i, leader_epoch=e) for i, e in enumerate((0, 0, 1, 1, 1, 1, 2))]
    handle = files.open(path(104, ".log"), create=True)
    handle.append(parts)
    log = reopened(files)
    assert log.leader_epochs.entries == [(0, 104), (1, 106), (2, 110)]
    assert (log.start_offset, log.end_offset) == (104, 111)


def test_a_log_that_ends_below_its_start_begins_anew_there():
    files = filled()
    files.write_atomic("/logs/log-start-offset-checkpoint", b"0\n1\nt 0 8\n")
    files.open(path(5, ".log")).write_at(40, b"\xee")
    log = reopened(files)
    assert (log.start_offset, log.end_offset) == (8, 8)
    assert log.local.segments.bases() == [8]
    assert not [n for n in files.list_dir(DIR) if n.endswith(".snapshot")]
    assert append(log, batch(1), epoch=9) == 8


def test_orphans_and_deleted_files_go():
    files = filled(close=True)
    for name in (
        "00000000000000000077.index",
        "00000000000000000077.timeindex",
        "00000000000000000000.log.deleted",
    ):
        files.open(f"{DIR}/{name}", create=True)
    log = reopened(files)
    assert not [n for n in files.list_dir(DIR) if "77" in n or n.endswith(".deleted")]
    assert read_offsets(log) == list(range(12))


def test_a_file_without_an_offset_is_an_error():
    files = filled(close=True)
    files.open(f"{DIR}/strange.log", create=True)
    with pytest.raises(InconsistentDirectory, match="offset"):
        reopened(files)


def test_an_empty_directory_gets_a_segment():
    files = filled(1, close=True)
    for name in files.list_dir(DIR):
        if not name.startswith("partition"):
            files.remove(f"{DIR}/{name}")
    log = reopened(files)
    assert (log.end_offset, log.local.segments.bases()) == (0, [0])


def swap_setup():
    """A cleaned segment with batches 1 and 3 that replaces 0..4."""
    files = filled(12, close=True)
    data = bytes(batch(1, base=1)) + bytes(batch(1, base=3))
    return files, data


def test_unfinished_cleaning_leaves_the_old_data():
    files, data = swap_setup()
    files.open(path(0, ".log.cleaned"), create=True).append([data])
    files.open(path(0, ".index.cleaned"), create=True)
    files.open(path(5, ".log.swap"), create=True).append([data])
    log = reopened(files)
    assert read_offsets(log) == list(range(12))
    assert not [n for n in files.list_dir(DIR) if n.endswith((".cleaned", ".swap"))]


def test_finished_swaps_replace_what_they_cover():
    files, data = swap_setup()
    files.open(path(0, ".log.swap"), create=True).append([data])
    files.open(path(0, ".index.swap"), create=True)
    log = reopened(files)
    assert [r.offset for r in read_records(log)] == [1, 3, *range(5, 12)]


def test_producers_and_open_transactions_are_replayed():
    files = filled(2)
    manager = open_manager(files, config=CONFIG)
    log = manager.get("t", 0)
    data = bytes(batch(1, base=2, producer=8, epoch=1, sequence=0, transactional=True, leader_epoch=0))
    data += bytes(batch(1, base=3, producer=9, epoch=0, sequence=4, transactional=True, leader_epoch=0))
    log.append_as_follower(data + bytes(marker(9, 0, commit=True, base=4, coordinator_epoch=3)), START_MS)
    before = {k: facts(e) for k, e in log.producers.entries.items()}
    manager.abandon()
    again = reopened(files)
    assert {k: facts(e) for k, e in again.producers.entries.items()} == before
    assert again.producers.entries[8].current_txn_first_offset == 2
    assert again.producers.entries[9].current_txn_first_offset == -1


def test_stray_snapshots_do_not_count():
    files = filled(3)
    files.open(path(99, ".snapshot"), create=True).append([b"junk"])
    log = reopened(files)
    assert log.producers.entries[3].last_sequence == 2
    assert path(99, ".snapshot").rpartition("/")[2] not in files.list_dir(DIR)


def test_epochs_that_a_power_cut_took_are_read_from_the_log():
    files = filled()
    files.write_atomic("/logs/recovery-point-offset-checkpoint", b"0\n1\nt 0 10\n")
    for content in (b"", bytes(12)):
        files.write_atomic(f"{DIR}/leader-epoch-checkpoint", content)
        assert reopened(unlocked(files)).leader_epochs.entries == [(0, 0), (1, 5), (2, 10)]
