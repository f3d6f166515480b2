import errno

from storage.flush_job import FlushJob
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, append, batch, open_manager


def new_log():
    return open_manager(SimFileSystem()).get_or_create("t", 0, TOPIC_ID)


def test_the_recovery_point_moves_when_the_sync_is_done():
    log = new_log()
    append(log, batch(3))
    job = FlushJob(log, 3)
    job.run()
    assert log.recovery_point == 0
    append(log, batch(1))
    job.finish()
    assert log.recovery_point == 3


def test_a_failed_sync_takes_the_directory_offline():
    log = new_log()
    append(log, batch(1))
    FlushJob(log, 1).finish(OSError(errno.EIO, "broken"))
    assert log.directory.offline


def test_a_flush_begun_before_a_cut_says_nothing_after_it():
    log = new_log()
    append(log, batch(1))
    append(log, batch(1))
    job = FlushJob(log, 2)
    job.run()
    log.truncate_to(1, START_MS)
    append(log, batch(1))
    job.finish()
    assert log.recovery_point == 0
