"""One local Spark for all Spark tests, with Spark's own Kafka connector and MariaDB's JDBC driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.quick import start_session
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One for all tests of a worker."""
    session = start_session(tmp_path_factory.mktemp("spark"))
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
