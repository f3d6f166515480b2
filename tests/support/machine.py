"""What the tests need of the machine beyond Python packages: Java, the oracles' jars, kcat, MariaDB.

`python -m tests.support.machine` brings what can be brought (`make test` calls it) and says in plain words
what is missing and which tests that costs. kcat and MariaDB are the only things whose tests may stay out, and
only where they can't be installed: not as root on a Debian system, and never under CI=true.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.support.jars import (
    JarsUnavailable,
    kafka_jars,
    kafka_streams_jars,
    kafka_tools_jars,
    mariadb_connector_jars,
    opensearch_jars,
    spark_kafka_jars,
)
from tests.support.java import JavaMissing, java
from tests.support.kafka_process import make_class_archive

KCAT_HINT = "kcat is missing: install it (Debian: `apt-get install kcat`, macOS: `brew install kcat`)"
MARIADB_HINT = (
    "MariaDB's server is missing: install it "
    "(Debian: `apt-get install mariadb-server-core mariadb-client-core`, macOS: `brew install mariadb`)"
)
SYSTEM_PROGRAMS = "/usr/sbin:/usr/local/sbin:/sbin"  # not on every user's PATH


def kcat() -> str | None:
    """The kcat program, under either of the names it is packaged as."""
    return shutil.which("kcat") or shutil.which("kafkacat")


class MariadbPrograms(NamedTuple):
    """What a server of a test's own takes."""

    server: Path
    install: Path


def mariadb_programs() -> MariadbPrograms | None:
    """MariaDB's server and the program that makes its first tables."""
    path = os.pathsep.join([os.environ.get("PATH", ""), SYSTEM_PROGRAMS])
    server, install = (shutil.which(name, path=path) for name in ("mariadbd", "mariadb-install-db"))
    return MariadbPrograms(Path(server), Path(install)) if server and install else None


class Tool(NamedTuple):
    """A program whose tests may stay out where it can't be had."""

    marker: str
    packages: tuple[str, ...]
    hint: str
    find: Callable[[], object]


TOOLS = (
    Tool("kcat", ("kcat",), KCAT_HINT, kcat),
    Tool("mariadb", ("mariadb-server-core", "mariadb-client-core"), MARIADB_HINT, mariadb_programs),
)


def may_do_without(tool: Tool) -> bool:
    """Whether tests that need a tool may stay out on this machine."""
    return tool.find() is None and os.environ.get("CI") != "true" and not can_install_packages()


def can_install_packages() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(tool: Tool) -> str | None:
    """Installs a tool where that is allowed; returns what is to be said where it is still missing."""
    if tool.find() is not None:
        return None
    if not can_install_packages():
        return tool.hint
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *tool.packages]):
        done = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return f"{tool.hint}; apt-get {command[0]} failed: {done.stderr.strip()[-300:]}"
    return None if tool.find() is not None else tool.hint


def spare_starts() -> None:
    """Makes what lets Kafkas and Sparks start sooner; without it every test runs as well."""
    from tests.spark import short_life  # who asks for a tool needs no clients of Kafka

    try:
        for version in ("4.4.0", "3.9.2"):
            make_class_archive(version)
        short_life.make()
    except (RuntimeError, OSError) as error:
        print(f"Not all classes of Apache Kafka and Spark are archived: {error}", file=sys.stderr)


def main() -> int:
    """Prepares the machine; the exit code tells whether every test can run (or may stay out)."""
    missing: list[str] = []
    try:
        java()
        for version in ("4.4.0", "3.9.2"):
            kafka_jars(version)
        kafka_tools_jars()
        kafka_streams_jars()
        spark_kafka_jars()
        mariadb_connector_jars()
        opensearch_jars()
    except (JavaMissing, JarsUnavailable) as error:
        missing.append(f"{error}\nTests marked `kafka` and `spark` need it and will fail.")
    else:
        spare_starts()
    for tool in TOOLS:
        without = install(tool)
        if without is not None and may_do_without(tool):
            print(f"{without}. Tests marked `{tool.marker}` stay out.", file=sys.stderr)
        elif without is not None:
            missing.append(f"{without}. Tests marked `{tool.marker}` will fail.")
    for line in missing:
        print(f"MISSING: {line}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
