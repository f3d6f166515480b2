"""`partition.metadata`: which topic id a partition directory belongs to (KIP-516).

The content is exactly `version: 0`, a line feed, `topic_id: <22 characters>` and no line feed at the end.
Apache Kafka takes a directory without the right file for a stray one and sets it aside.
"""

from __future__ import annotations

import re

from protocol.uuids import ZERO_UUID, uuid_from_text, uuid_to_text
from runtime.files import FileSystem
from storage.checkpoints import replace_file
from storage.errors import CorruptCheckpoint

_SEPARATOR = re.compile(r":\s+")


def read_topic_id(files: FileSystem, path: str) -> bytes:
    """The 16 bytes of the topic id; the zero id where the file does not exist.

    Raises CorruptCheckpoint for anything but a known version followed by a non-zero id.
    """
    if not files.exists(path):
        return ZERO_UUID
    try:
        lines = files.read_bytes(path).decode().splitlines()
        version, topic_id = (_SEPARATOR.split(line, maxsplit=1) for line in lines)
        if version[0] != "version" or int(version[1]) < 0 or topic_id[0] != "topic_id":
            raise ValueError("unknown keys")
        found = uuid_from_text(topic_id[1])
    except (ValueError, IndexError) as error:
        raise CorruptCheckpoint(f"{path} is not a partition metadata file: {error}") from error
    if found == ZERO_UUID:
        raise CorruptCheckpoint(f"{path} holds the zero topic id")
    return found


def write_topic_id(files: FileSystem, path: str, topic_id: bytes) -> None:
    """Not synced: the next flush of the log does that, and a lost file is simply written anew."""
    replace_file(files, path, f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode())
