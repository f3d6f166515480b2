"""pytest fixtures: a broker for the session, a topic for each test.

    def test_orders(kafka_broker, kafka_topic):
        producer = kafka_broker.producer()
        producer.produce(kafka_topic, b"order 1")

The names are those of pytest-kafka-broker. The methods return the objects of the client libraries
themselves, and a library is imported when it is asked for. Nothing here runs before a fixture is used.

Settings: the ini option `kafka_broker_extra_config` (lines `key=value` of server.properties), or a
session fixture `kafka_broker_overrides` of your own that returns a dict.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ottla.embedded import EmbeddedBroker

TOPIC_NAME_MAX = 200

_topics = itertools.count(1)
_groups = itertools.count(1)


class ClientMissing(RuntimeError):
    """The client library that a fixture's method stands for is not installed."""


@dataclass(slots=True)
class KafkaBroker:
    """What the fixture `kafka_broker` hands out: the running broker's address and clients for it.

    `config`, `admin`, `producer`, `consumer`, `aio_producer` and `aio_consumer` are for confluent-kafka; each
    takes further librdkafka properties.
    """

    process: EmbeddedBroker

    @property
    def bootstrap_server(self) -> str:
        """`host:port`."""
        return self.process.bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        """The same under the name that most clients use."""
        return self.process.bootstrap_servers

    def config(self, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """librdkafka properties for this broker; the address can't be overridden."""
        return {
            "security.protocol": "PLAINTEXT",
            **(config or {}),
            "bootstrap.servers": self.bootstrap_server,
        }

    def admin(self, config: Mapping[str, Any] | None = None) -> Any:
        """A `confluent_kafka.admin.AdminClient`."""
        return _imported("confluent_kafka.admin", "AdminClient")(self.config(config))

    def producer(self, config: Mapping[str, Any] | None = None) -> Any:
        """A `confluent_kafka.Producer`."""
        return _imported("confluent_kafka", "Producer")(self.config(config))

    def consumer(self, config: Mapping[str, Any] | None = None) -> Any:
        """A `confluent_kafka.Consumer` that begins with the oldest record, in a group of its own.

        A `group.id` of yours lets several consumers share a topic, or one go on where another has ended.
        """
        return _imported("confluent_kafka", "Consumer")(self._consumer_config(config))

    def aio_producer(self, config: Mapping[str, Any] | None = None) -> Any:
        """A `confluent_kafka.aio.AIOProducer`; call it inside a running event loop."""
        return _imported("confluent_kafka.aio", "AIOProducer")(self.config(config))

    def aio_consumer(self, config: Mapping[str, Any] | None = None) -> Any:
        """A `confluent_kafka.aio.AIOConsumer`, as `consumer`; call it inside a running event loop."""
        return _imported("confluent_kafka.aio", "AIOConsumer")(self._consumer_config(config))

    def _consumer_config(self, config: Mapping[str, Any] | None) -> dict[str, Any]:
        own = {"group.id": f"test-{next(_groups)}", "auto.offset.reset": "earliest"}
        return self.config({**own, **(config or {})})


def _imported(module: str, name: str) -> Any:
    import importlib

    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ClientMissing(
            f"this fixture's method returns a {module}.{name}, which is not there ({error}): "
            "`pip install confluent-kafka` (2.13 or later for the aio clients), or use the client you have "
            "with `kafka_broker.bootstrap_server`"
        ) from error


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the ini option."""
    parser.addini(
        "kafka_broker_extra_config",
        type="linelist",
        default=[],
        help="settings of the kafka_broker fixture, lines `key=value` of server.properties",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers",
        "kafka_topic(partitions=1, config={}): how the fixture kafka_topic creates its topic",
    )


@pytest.fixture(scope="session")
def kafka_broker_overrides() -> dict[str, object]:
    """Settings of the session's broker; override this fixture with your own."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(
    pytestconfig: pytest.Config, kafka_broker_overrides: Mapping[str, object]
) -> Iterator[KafkaBroker]:
    """A broker for the whole session (one per xdist worker), on a port of its own, its data temporary."""
    from ottla.embedded import EmbeddedBroker

    pairs = (line.partition("=") for line in pytestconfig.getini("kafka_broker_extra_config"))
    overrides = {key.strip(): value.strip() for key, _, value in pairs}
    with EmbeddedBroker(overrides={**overrides, **kafka_broker_overrides}) as process:
        yield KafkaBroker(process)


@pytest.fixture
def kafka_topic(request: pytest.FixtureRequest, kafka_broker: KafkaBroker) -> Iterator[str]:
    """The name of a topic that exists for this test only, made from the test's name."""
    marker = request.node.get_closest_marker("kafka_topic")
    wanted = marker.kwargs if marker else {}
    stem = re.sub(r"[^a-zA-Z0-9_-]+", "-", request.node.name)[:TOPIC_NAME_MAX].strip("-")
    name = f"{stem}-{next(_topics)}"
    kafka_broker.process.create_topic(name, wanted.get("partitions", 1), wanted.get("config"))
    yield name
    kafka_broker.process.delete_topic(name)
