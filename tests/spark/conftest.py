"""One local Spark for all Spark tests, with Spark's own Kafka connector and MariaDB's JDBC driver."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.quick import spark_environment
from tests.support.jars import mariadb_connector_jars, spark_kafka_jars
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """`local[2]`, no console, files in a directory of the test's own."""
    from pyspark.sql import SparkSession

    os.environ.update(spark_environment())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # for Python workers
    folder = tmp_path_factory.mktemp("spark")
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
    yield session
    session.stop()


@pytest.fixture(params=["ottla_process", "apache_kafka"], scope="module")
def either_broker(request: pytest.FixtureRequest) -> OttlaProcess | KafkaProcess:
    """Each broker in turn, and no more than once a module: Kafka's own answers are what ours must be."""
    broker: OttlaProcess | KafkaProcess = request.getfixturevalue(request.param)
    return broker


@pytest.fixture(scope="session")
def own_broker() -> Iterator[OttlaProcess]:
    """One of ours that tests may stop, if they start it again; its cleaner looks often."""
    with OttlaProcess({"log.cleaner.backoff.ms": "100"}) as broker:
        yield broker
