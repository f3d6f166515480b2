import pytest

from runtime.entropy import SeededRandom
from storage.local_log import LocalLog
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import batch


def new_log(**config):
    files = SimFileSystem()
    files.make_dirs("/logs/p-0")
    log = LocalLog(files, "/logs/p-0", LogConfig(**config), SeededRandom(b"x"))
    log.new_segment(0, 0)
    return files, log


def write(log, data):
    log.segments.active.handle.append([data])
    log.segments.active.size += len(data)


def test_a_roll_below_or_onto_a_full_segment_is_an_error():
    _, log = new_log()
    write(log, batch(1))
    for base in (0, -1):
        with pytest.raises(ValueError, match="is active"):
            log.roll(base, 0)
    assert log.roll(1, 0).base_offset == 1


def test_a_new_segment_removes_index_files_of_its_name():
    files, log = new_log()
    write(log, batch(1))
    files.open("/logs/p-0/00000000000000000001.index", create=True).append([b"12345678"])
    assert log.roll(1, 0).offset_index.entries == 0
    assert not files.exists("/logs/p-0/00000000000000000001.index")


def test_jitter_lies_below_its_bound():
    _, log = new_log(segment_jitter_ms=50, segment_ms=20)
    drawn = []
    for base in range(1, 40):
        write(log, batch(1))
        drawn.append(log.roll(base, 0).jitter_ms)
    assert max(drawn) < 20
    assert min(drawn) >= 0
    assert len(set(drawn)) > 5


def test_set_aside_files_wait_for_their_time():
    files, log = new_log(file_delete_delay_ms=100)
    write(log, batch(1))
    log.roll(1, 0)
    log.set_aside([log.segments.first], 1000)
    assert log.take_doomed(1099) == []
    (paths,) = log.take_doomed(1100)
    assert all(path.endswith(".deleted") and files.exists(path) for path in paths)
    assert log.take_doomed(9999) == []


def test_a_flush_covers_what_lies_between_the_recovery_point_and_its_goal():
    files, log = new_log()
    write(log, batch(1))
    log.roll(1, 0)
    write(log, batch(1, base=1))
    synced = []
    files.draw = lambda operation, path: synced.append((operation, path)) if "sync" in operation else None
    log.flush_job(2, None)()
    log.mark_flushed(2, log.names_made)
    assert ("sync", "/logs/p-0/00000000000000000000.log") in synced
    assert ("sync", "/logs/p-0/00000000000000000001.timeindex") in synced
    assert ("sync_dir", "/logs/p-0") in synced
    assert ("sync_dir", "/logs") in synced
    synced.clear()
    log.flush_job(2, None)()
    assert ("sync_dir", "/logs/p-0") not in synced
    log.mark_flushed(1, log.names_made)
    assert log.recovery_point == 2
