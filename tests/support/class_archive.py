"""Classes of big Java programs as the JVM has them in memory, in files: starts take half to two thirds.

The JVM reads such an archive (class data sharing) in place of parsing and verifying thousands of classes.
Each is made once (`make`) and is named after the Java that wrote it. A JVM that can't use what it is given
starts without.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support.jars import locked
from tests.support.java import java

QUIET = "-Xlog:cds*=off"  # nothing of it is for who reads a program's output


class ClassArchive(NamedTuple):
    """The archive of a program whose jars have this name."""

    folder: Path
    name: str

    @property
    def path(self) -> Path:
        """Where it is, or will be."""
        built = java().resolve().stat()
        return self.folder / f"{self.name}-{built.st_size}-{built.st_mtime_ns}.jsa"

    def reading_flags(self) -> tuple[str, ...]:
        """What makes a JVM take the archive, nothing where there is none."""
        path = self.path
        return (f"-XX:SharedArchiveFile={path}", QUIET) if path.exists() else ()

    def make(self, live: Callable[[tuple[str, ...]], bool]) -> None:
        """Makes the archive, unless it is there.

        `live` starts and ends the program's JVM with the flags that it gets, and says whether that went well.
        """
        path = self.path
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if path.exists():
                return
            partial = path.with_suffix(".partial")
            ended_well = live((f"-XX:ArchiveClassesAtExit={partial}", QUIET))
            if ended_well and partial.exists():  # not from every Java
                partial.rename(path)
