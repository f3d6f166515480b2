"""The environment of processes of Spark in the tests: a Java, and settings that make a short life quick.

`conf/spark-defaults.conf` holds Spark's settings; the flags here are for its launcher, which reads none.
The test of a cluster (`test_cluster.py`) goes without them.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.java import java_home

CONF = Path(__file__).with_name("conf")
FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_environment() -> dict[str, str]:
    """Variables that the tests' processes have beside their own."""
    return {
        "JAVA_HOME": str(java_home()),
        "SPARK_CONF_DIR": str(CONF),
        "SPARK_LAUNCHER_OPTS": FLAGS,
    }
