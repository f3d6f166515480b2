"""What makes a Spark of the tests start and work quickly: its environment, the flags of its JVM, its session.

`conf/spark-defaults.conf` holds Spark's settings. They come as a file of properties, not by SPARK_CONF_DIR:
that is a folder on the class path, and a JVM that has one can't read archived classes. The test of a cluster
(`test_cluster.py`) goes with the settings that users have.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.class_archive import ClassArchive
from tests.support.jars import mariadb_connector_jars, pyspark_jar, spark_kafka_jars
from tests.support.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = Path(__file__).with_name("conf") / "spark-defaults.conf"

# Runs of the second compiler cost more than they bring in so short a life. With the first alone a JVM has
# room for 48 MB of compiled code, which Spark fills within a dozen tests: code is then thrown away and made
# again.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:ReservedCodeCacheSize=256m")


def classes() -> ClassArchive:
    """Spark's classes: archived once per environment, because a JVM takes them for jars in one place only."""
    core = pyspark_jar("spark-core_")
    return ClassArchive(Path(sys.prefix) / "classes", f"{core.stem}-{core.stat().st_mtime_ns}")


def jvm_flags() -> str:
    """For any JVM of Spark's: driver, executor or daemon."""
    return " ".join((*JVM_FLAGS, *classes().reading_flags()))


def spark_environment(flags: str | None = None) -> dict[str, str]:
    """Variables that the tests' processes have beside their own."""
    return {
        "JAVA_HOME": str(java_home()),
        "SPARK_CONF_DIR": "",  # Spark's own, which is not there
        "PYSPARK_SUBMIT_ARGS": f"--properties-file '{SETTINGS}' pyspark-shell",
        "SPARK_LAUNCHER_OPTS": " ".join(JVM_FLAGS),
        "SPARK_SUBMIT_OPTS": flags or jvm_flags(),
    }


def start_session(folder: Path, flags: str | None = None) -> SparkSession:
    """`local[2]`, no console, files in the folder."""
    from pyspark.sql import SparkSession

    os.environ.update(spark_environment(flags))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # for Python workers
    jars = [
        jar for jars in (spark_kafka_jars(), mariadb_connector_jars()) for jar in sorted(jars.glob("*.jar"))
    ]
    session = (
        SparkSession.builder.master("local[2]")
        .appName("ottla-tests")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.local.dir", str(folder / "local"))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
