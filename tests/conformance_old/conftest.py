"""Behaviour that Kafka 4 dropped, asserted on our broker and on a real Apache Kafka 3.9.2 alike.

As in `tests/conformance` every test runs twice, so an assertion that is not Kafka's own fails on Kafka.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

_numbers = itertools.count()


@pytest.fixture
def wire(either_old_broker: OttlaProcess | KafkaProcess) -> Iterator[WireClient]:
    """A connection to each broker in turn."""
    with WireClient(either_old_broker.bootstrap_servers) as client:
        yield client


@pytest.fixture
def name() -> str:
    """A topic name of the test's own."""
    return f"old-{next(_numbers)}"


@pytest.fixture
def topic(wire: WireClient, name: str) -> str:
    """A fresh topic with one partition."""
    wire.create_topic(name)
    return name
