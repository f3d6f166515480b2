import pytest

from storage.index_check import index_problem
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, append, batch, open_manager

ONE = len(batch(1))
INDEX, TIMES = "/logs/t-0/00000000000000000000.index", "/logs/t-0/00000000000000000000.timeindex"


@pytest.fixture
def sealed():
    files = SimFileSystem()
    log = open_manager(
        files, config=LogConfig(segment_bytes=5 * ONE, index_interval_bytes=ONE)
    ).get_or_create("t", 0, TOPIC_ID)
    for number in range(6):
        append(log, batch(1, ts=START_MS + number))
    return files, log.local.segments.first


def test_sound_indexes_have_no_problem(sealed):
    files, segment = sealed
    assert index_problem(files, segment, files.list_dir("/logs/t-0"), 5) is None


def test_zeros_at_the_end_are_no_problem(sealed):
    files, segment = sealed
    files.open(INDEX).append([bytes(80)])
    files.open(TIMES).append([bytes(120)])
    assert index_problem(files, segment, files.list_dir("/logs/t-0"), 5) is None


@pytest.mark.parametrize(
    ("path", "junk", "told"),
    [
        (INDEX, b"x", "torn"),
        (TIMES, b"x", "torn"),
        (INDEX, (9).to_bytes(4) + (70).to_bytes(4), "ends with offset 9, the log with 5"),
        (INDEX, (3).to_bytes(4) + (70_000).to_bytes(4), "points to position 70000"),
        (INDEX, b"\xff" * 8, "ends with offset -1"),
        (TIMES, (1).to_bytes(8) + (4).to_bytes(4), "below the first"),
        (TIMES, START_MS.to_bytes(8) + (77).to_bytes(4), "ends with offset 77"),
    ],
)
def test_what_cannot_be_right_is_found(sealed, path, junk, told):
    files, segment = sealed
    files.open(path).append([junk])
    assert told in index_problem(files, segment, files.list_dir("/logs/t-0"), 5)


@pytest.mark.parametrize(("path", "told"), [(INDEX, "no .index file"), (TIMES, "no .timeindex file")])
def test_a_missing_file_is_found(sealed, path, told):
    files, segment = sealed
    files.remove(path)
    assert told in index_problem(files, segment, files.list_dir("/logs/t-0"), 5)
