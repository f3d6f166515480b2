"""Names of files and directories inside a log directory, and how they are read back.

A partition lives in `TOPIC-PARTITION`; a suffixed directory `TOPIC-PARTITION.ID-delete` (or `-stray`,
`-future`) is one that is on its way out or in. Segment files carry their base offset in 20 digits. The rules
are Kafka's, so that either broker can open what the other wrote; nothing here touches the disk.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"
LOCK = ".lock"
MOVED_HERE = "moved-here"  # in a partition directory: it stands for the one in the other log directory

# Directories that may stand beside partitions without being one (storage of remote tiers, KRaft's own log).
FOREIGN_DIRS = ("remote-log-index-cache",)
METADATA_TOPIC = "__cluster_metadata"

NAME_LENGTH_MAX = 255
_SUFFIXED = re.compile(r"(\S+)-(\S+)\.(\S+)-(delete|stray|future)")


class PartitionDir(NamedTuple):
    """What a directory name says; `kind` is empty for a live partition, else `delete`, `stray`, `future`."""

    topic: str
    partition: int
    kind: str


def segment_file(base_offset: int, suffix: str) -> str:
    """`00000000000000000042.log` for (42, '.log')."""
    return f"{base_offset:020d}{suffix}"


def offset_of(name: str) -> int:
    """The number a segment file's name starts with; ValueError where there is none."""
    digits = name.partition(".")[0]
    if not digits.isascii() or not digits.isdigit():
        raise ValueError(f"the file name {name!r} does not start with an offset")
    return int(digits)


def partition_dir(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def suffixed_dir(topic: str, partition: int, unique: bytes, kind: str) -> str:
    """The name a directory gets when it is set aside, at most 255 characters.

    `unique` are 16 random bytes; of a long topic name as much is kept as fits.
    """
    tail = f"-{partition}.{unique.hex()}-{kind}"
    return topic[: NAME_LENGTH_MAX - len(tail)] + tail


def future_dir(topic: str, partition: int, unique: bytes) -> str:
    """The name of a copy that is to become the partition; may be too long for a file system, as in Kafka."""
    return f"{topic}-{partition}.{unique.hex()}-future"


def parse_partition_dir(name: str) -> PartitionDir:
    """Read a directory name; ValueError, with the reason, when no partition can be called that."""
    kind, stem = "", name
    for suffix in ("delete", "stray", "future"):
        if name.endswith("-" + suffix):
            match = _SUFFIXED.fullmatch(name)
            if match is None:
                raise ValueError(
                    f"directory {name!r} ends in -{suffix} but is not TOPIC-PARTITION.ID-{suffix}"
                )
            kind, stem = suffix, name[: name.rindex(".")]
    topic, dash, number = stem.rpartition("-")
    if not dash or not topic or not number:
        raise ValueError(f"directory {name!r} is not of the form TOPIC-PARTITION")
    if not (number.isascii() and number.isdigit()):
        raise ValueError(f"directory {name!r} does not end in a partition number")
    return PartitionDir(topic, int(number), kind)
