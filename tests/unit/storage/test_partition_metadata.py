import pytest

from protocol.uuids import ZERO_UUID, uuid_to_text
from storage.errors import CorruptCheckpoint
from storage.partition_metadata import read_topic_id, write_topic_id
from tests.simulation.files import SimFileSystem

PATH = "/p/partition.metadata"
TOPIC_ID = bytes(range(16))


def disk(content: bytes | None = None) -> SimFileSystem:
    files = SimFileSystem()
    files.make_dirs("/p")
    if content is not None:
        files.write_atomic(PATH, content)
    return files


def test_the_file_is_exactly_two_lines_without_a_line_feed_at_the_end():
    files = disk()
    write_topic_id(files, PATH, TOPIC_ID)
    assert files.read_bytes(PATH) == b"version: 0\ntopic_id: " + uuid_to_text(TOPIC_ID).encode()
    assert read_topic_id(files, PATH) == TOPIC_ID


def test_a_missing_file_is_the_zero_id():
    assert read_topic_id(disk(), PATH) == ZERO_UUID


@pytest.mark.parametrize(
    "content",
    [b"", b"version: 0\n", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
     b"version: -1\ntopic_id: " + b"B" * 22,
     b"version: 0\ntopic_id: short", b"version: 0\ntopic: x", b"version: 0\ntopic_id: x\nmore: y", b"\xff"],
)  # fmt: skip
def test_anything_else_is_damage(content):
    with pytest.raises(CorruptCheckpoint):
        read_topic_id(disk(content), PATH)


def test_a_higher_version_and_more_white_space_are_read():
    text = b"version:   1\ntopic_id:  " + uuid_to_text(TOPIC_ID).encode() + b"\n"
    assert read_topic_id(disk(text), PATH) == TOPIC_ID
