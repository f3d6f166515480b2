"""Apache Kafka's classes as the JVM has them in memory, in a file: a start takes two thirds of the time.

The JVM reads such an archive (class data sharing) in place of parsing and verifying thousands of classes. It
is made once per user (`make_class_archive` of kafka_process.py), lies beside the jars (jars.py) and is named
after the Java that wrote it. A JVM that can't use what it is given starts without.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.jars import cache_root, kafka_jars
from tests.support.java import java

QUIET = "-Xlog:cds*=off"  # nothing of it is for who reads a server's log


def archive_path(version: str) -> Path:
    """Where the archive of a Kafka and of this machine's Java is, or will be."""
    built = java().resolve().stat()
    return cache_root() / "classes" / f"{kafka_jars(version).name}-{built.st_size}-{built.st_mtime_ns}.jsa"


def reading_flags(version: str) -> tuple[str, ...]:
    """What makes a JVM take the archive, nothing where there is none."""
    path = archive_path(version)
    return (f"-XX:SharedArchiveFile={path}", QUIET) if path.exists() else ()
