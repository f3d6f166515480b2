"""The fixtures, in a test session of a user's that knows nothing of this checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla import pytest_plugin

USERS_TESTS = """
import pytest
from confluent_kafka import Producer


def test_clients_are_the_librarys_own(kafka_broker, kafka_topic):
    producer = kafka_broker.producer()
    assert isinstance(producer, Producer)
    producer.produce(kafka_topic, b"hello")
    assert producer.flush(60) == 0

    consumer = kafka_broker.consumer()
    consumer.subscribe([kafka_topic])
    assert consumer.poll(60).value() == b"hello"
    consumer.close()


def test_a_group_goes_on_where_its_last_consumer_ended(kafka_broker, kafka_topic):
    producer = kafka_broker.producer()
    for value in (b"first", b"second"):
        producer.produce(kafka_topic, value)
    producer.flush(60)
    for value in (b"first", b"second"):
        consumer = kafka_broker.consumer({"group.id": "mine"})
        consumer.subscribe([kafka_topic])
        assert consumer.poll(60).value() == value
        consumer.close()


@pytest.mark.kafka_topic(partitions=3, config={"retention.ms": 1000})
def test_a_topic_as_the_marker_says(kafka_broker, kafka_topic):
    topics = kafka_broker.admin().list_topics(timeout=60).topics
    assert len(topics[kafka_topic].partitions) == 3
    assert [name for name in topics if name.startswith("test_")] == [kafka_topic]


def test_the_configuration_names_the_broker(kafka_broker):
    assert kafka_broker.config({"acks": 1})["bootstrap.servers"] == kafka_broker.bootstrap_server
    assert kafka_broker.config({"acks": 1})["acks"] == 1


async def use(kafka_broker, kafka_topic):
    producer = kafka_broker.aio_producer()
    await (await producer.produce(kafka_topic, value=b"async"))
    await producer.close()
    consumer = kafka_broker.aio_consumer()
    await consumer.subscribe([kafka_topic])
    received = await consumer.poll(60)
    await consumer.close()
    return received.value()


def test_asynchronous_clients(kafka_broker, kafka_topic):
    import asyncio

    assert asyncio.run(use(kafka_broker, kafka_topic)) == b"async"


def test_settings_reach_the_broker(kafka_broker):
    import sys

    assert not [name for name in sys.modules if name.split(".")[0] in ("broker", "storage", "protocol")]
    producer = kafka_broker.producer()
    producer.produce("made-on-demand", b"x")
    assert producer.flush(60) == 0
    partitions = kafka_broker.admin().list_topics(timeout=60).topics["made-on-demand"].partitions
    assert len(partitions) == 2
"""


def test_a_users_session_gets_a_broker_topics_and_clients(tmp_path) -> None:
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers\nkafka_broker_extra_config =\n    num.partitions=2\n"
    )
    (tmp_path / "protocol.py").write_text("raise ImportError('a module of the user')")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_a_client_that_is_missing_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.setitem(sys.modules, "confluent_kafka.aio", None)

    class Process:
        bootstrap_servers = "127.0.0.1:9"

    broker = pytest_plugin.KafkaBroker(Process())
    with pytest.raises(pytest_plugin.ClientMissing, match=r"confluent_kafka\.Producer.*pip install"):
        broker.producer()
    with pytest.raises(pytest_plugin.ClientMissing, match=r"confluent_kafka\.aio\.AIOConsumer"):
        broker.aio_consumer()
    assert broker.bootstrap_server == broker.bootstrap_servers == "127.0.0.1:9"


def test_the_plugin_imports_nothing_of_a_client_or_the_broker() -> None:
    code = (
        "import sys, ottla.pytest_plugin; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & "
        "{'confluent_kafka', 'kafka', 'aiokafka', 'broker', 'storage', 'protocol', 'asyncio'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).resolve().parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
