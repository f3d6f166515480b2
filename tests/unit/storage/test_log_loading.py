import errno
import logging

import pytest

from storage.segment_scan import scan_inline
from tests.simulation.files import SimFileSystem
from tests.support.logs import CLUSTER, TOPIC_ID, FixedClock, append, batch, open_manager, read_offsets

PATHS = ("/one", "/two")


def killed() -> SimFileSystem:
    files = SimFileSystem()
    manager = open_manager(files, PATHS)
    for partition in range(4):
        append(manager.get_or_create("t", partition, TOPIC_ID), batch(3))
    manager.abandon()
    return files


def test_every_log_gets_the_answers_to_its_own_requests():
    files = killed()
    manager = open_manager(files, PATHS)
    assert [read_offsets(log) for log in manager] == [[0, 1, 2]] * 4
    assert all(directory.loaded for directory in manager.dirs)


def test_a_disk_that_fails_while_it_is_read_leaves_the_others_alone():
    files = killed()
    files.fail_next("read_at", errno.EIO, "/one/t-0")
    manager = open_manager(files, PATHS)
    assert [directory.offline for directory in manager.dirs] == [True, False]
    assert sorted(log.directory.path for log in manager) == ["/two", "/two"]


def test_progress_is_told(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "storage")
    files, clock = killed(), FixedClock()

    def slow(requests):
        for answer in scan_inline(files)(requests):
            clock.ms += 1500
            yield answer

    manager = open_manager(SimFileSystem(), PATHS, clock=clock)
    caplog.clear()
    manager = type(manager)(files, clock, manager.random, PATHS, manager._config_of)
    manager.open(CLUSTER, 1)
    manager.load(slow)
    told = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Recovery")]
    assert told[0] == "Recovery reads 4 segments, 0.0 MB"
    assert told[1:-1] == [
        "Recovery has read 0.0 MB of 0.0 MB, 1 of 4 logs are loaded",
        "Recovery has read 0.0 MB of 0.0 MB, 3 of 4 logs are loaded",
    ]
    assert told[-1] == "Recovery has read 4 segments, 0.0 MB, in 6.0 s; 4 logs are loaded"


def test_a_clean_start_has_nothing_to_tell(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "storage")
    files = killed()
    open_manager(files, PATHS).close()
    caplog.clear()
    open_manager(files, PATHS)
    assert "Recovery" not in caplog.text
