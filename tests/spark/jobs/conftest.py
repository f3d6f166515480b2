"""What tests of jobs share: a broker that keeps the records of 2013, flights in a topic, databases."""

from __future__ import annotations

import itertools
import signal
import zlib
from collections.abc import Iterator

import pytest

from tests.clients.datasets import flights
from tests.spark.topics import Record
from tests.support.mariadb_process import MariadbProcess
from tests.support.opensearch_process import OpenSearchProcess
from tests.support.ottla_process import OttlaProcess


@pytest.fixture(scope="module")
def jobs_broker() -> Iterator[OttlaProcess]:
    """A broker of the module's own, which it may stop and start."""
    with OttlaProcess({"log.retention.ms": "-1", "num.partitions": "3"}) as broker:
        yield broker


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbProcess]:
    """A MariaDB with the databases `shop` (a source) and `copy`: use tables of your own."""
    with MariadbProcess() as server:
        server.run("CREATE DATABASE shop", "CREATE DATABASE copy")
        yield server


@pytest.fixture(scope="session")
def opensearch() -> Iterator[OpenSearchProcess]:
    """An OpenSearch that starts while the test goes on: `wait()` before it is asked."""
    with OpenSearchProcess() as search:
        yield search


@pytest.fixture(scope="session")
def flight_records() -> list[Record]:
    """6,000 flights as records for three partitions, by key; the timestamps are of January 2013."""
    return [
        Record(zlib.crc32(row.key or b"") % 3, row.value or b"", row.timestamp_ms, row.key, row.headers)
        for row in itertools.islice(flights(), 6000)
    ]


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Puts this process's signal handlers back that a job has replaced."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
