import errno

import pytest

from storage import checkpoints
from storage.errors import CorruptCheckpoint
from tests.simulation.files import SimFileSystem

PATH = "/logs/recovery-point-offset-checkpoint"


def disk(content: bytes | None) -> SimFileSystem:
    files = SimFileSystem()
    files.make_dirs("/logs")
    if content is not None:
        files.write_atomic(PATH, content)
    return files


def test_offsets_are_written_as_kafka_writes_them():
    files = disk(None)
    checkpoints.write_offsets(files, PATH, {("a", 0): 5, ("b.c-d", 12): 1 << 40})
    assert files.read_bytes(PATH) == b"0\n2\na 0 5\nb.c-d 12 1099511627776\n"
    assert checkpoints.read_offsets(files, PATH) == {("a", 0): 5, ("b.c-d", 12): 1 << 40}


@pytest.mark.parametrize("content", [None, b"", b"0\n", b"0\n0\n", b"0\n0"])
def test_missing_and_empty_files_hold_nothing(content):
    assert checkpoints.read_offsets(disk(content), PATH) == {}


def test_any_white_space_separates_and_the_last_line_feed_may_lack():
    assert checkpoints.read_offsets(disk(b"0\n1\na\t3   4"), PATH) == {("a", 3): 4}


@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"x\n0\n", b"0\nx\n", b"0\n2\na 0 1\n", b"0\n0\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 1 2\n",
     b"0\n1\na x 1\n",
     b"0\n1\na 0 y\n", b"\xff\xfe"],
)  # fmt: skip
def test_a_malformed_file_is_an_error(content):
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_offsets(disk(content), PATH)


@pytest.mark.parametrize("operation", ["append", "sync", "rename", "sync_dir"])
def test_a_crash_leaves_the_old_or_the_new_file_whole(operation):
    files = disk(b"0\n1\na 0 1\n")
    files.sync_dir("/")
    files.fail_next(operation, errno.EIO)
    with pytest.raises(OSError, match="error"):
        checkpoints.write_offsets(files, PATH, {("a", 0): 2})
    after = files.crash()
    assert checkpoints.read_offsets(after, PATH) in ({("a", 0): 1}, {("a", 0): 2})
