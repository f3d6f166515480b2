"""What the tests need of the machine beyond Python packages: Java, the oracles' jars, kcat.

`python -m tests.support.machine` brings what can be brought (`make test` calls it) and says in plain words
what is missing and which tests that costs. kcat is the only thing whose tests may stay out, and only where it
can't be installed: not as root on a Debian system, and never under CI=true.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tests.support.jars import JarsUnavailable, kafka_jars, kafka_tools_jars, spark_kafka_jars
from tests.support.java import JavaMissing, java

KCAT_HINT = "kcat is missing: install it (Debian: `apt-get install kcat`, macOS: `brew install kcat`)"


def kcat() -> str | None:
    """The kcat program, under either of the names it is packaged as."""
    return shutil.which("kcat") or shutil.which("kafkacat")


def may_do_without_kcat() -> bool:
    """Whether tests that need kcat may stay out on this machine."""
    return kcat() is None and os.environ.get("CI") != "true" and not can_install_packages()


def can_install_packages() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_kcat() -> str | None:
    """Installs kcat where that is allowed; returns what is to be said where it is still missing."""
    if kcat() is not None:
        return None
    if not can_install_packages():
        return KCAT_HINT
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "kcat"]):
        done = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            return f"{KCAT_HINT}; apt-get {command[0]} failed: {done.stderr.strip()[-300:]}"
    return None if kcat() is not None else KCAT_HINT


def main() -> int:
    """Prepares the machine; the exit code tells whether every test can run (or may stay out)."""
    missing: list[str] = []
    try:
        java()
        for version in ("4.4.0", "3.9.2"):
            kafka_jars(version)
        kafka_tools_jars()
        spark_kafka_jars()
    except (JavaMissing, JarsUnavailable) as error:
        missing.append(f"{error}\nTests marked `kafka` and `spark` need it and will fail.")
    without_kcat = install_kcat()
    if without_kcat is not None and may_do_without_kcat():
        print(f"{without_kcat}. Tests marked `kcat` stay out.", file=sys.stderr)
    elif without_kcat is not None:
        missing.append(f"{without_kcat}. Tests marked `kcat` will fail.")
    for line in missing:
        print(f"MISSING: {line}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
