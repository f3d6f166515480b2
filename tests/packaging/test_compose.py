"""`docker compose up` without containers: the same commands, a real ZooKeeper in the place of its image.

The brokers get healthy, the topic is made, the Spark job copies what a client outside writes, and each
service ends in good order at its stop signal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.clients.readers import read_with_confluent
from tests.packaging.compose import HERE, Compose, Service
from tests.packaging.dockerfile import Image
from tests.support.waiting import wait_until
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = [pytest.mark.spark, pytest.mark.zookeeper]

BROKERS = ("broker1", "broker2", "broker3")
OUTSIDE = (9092, 9093, 9094)
NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART)
VALUES = [b"order %d" % number for number in range(500)]


@pytest.fixture(scope="module")
def services(
    compose: Compose,
    made: dict[str, Image],
    zookeeper: ZookeeperProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Service]]:
    """All but ZooKeeper's, not started."""
    compose.addresses["zookeeper", 2181] = zookeeper.port
    folder = tmp_path_factory.mktemp("services")
    found = {
        name: compose.service(name, made[compose.services[name]["image"]], folder)
        for name in compose.order()
        if name != "zookeeper"
    }
    yield found
    for service in found.values():
        service.kill()


def bootstrap(compose: Compose, ports: tuple[int, ...] = OUTSIDE) -> str:
    """What a client on the host connects to."""
    return ",".join(f"{HERE}:{compose.published_port(port)}" for port in ports)


def copied(compose: Compose) -> Counter[bytes]:
    """What the job has written; nothing while a broker has not heard yet what it leads."""
    try:
        found = read_with_confluent(bootstrap(compose), ["orders-wide"], 6)["orders-wide"]
    except KafkaException as error:
        if not (error.args[0].retriable() or error.args[0].code() in NOT_YET):
            raise
        return Counter()
    return Counter(row.value for rows in found for _, row in rows if row.value is not None)


def topics(compose: Compose, ports: tuple[int, ...] = OUTSIDE) -> dict[str, list[int]]:
    """How many replicas are in sync, by topic and partition, as the first broker knows that answers."""
    admin = AdminClient({"bootstrap.servers": bootstrap(compose, ports), "log_level": 0})
    found = admin.list_topics(timeout=60).topics
    return {name: [len(each.isrs) for each in topic.partitions.values()] for name, topic in found.items()}


def test_all_services_start_in_their_order_and_end_in_good_order(
    services: dict[str, Service], compose: Compose
) -> None:
    for name in BROKERS:
        services[name].start()
    for name in BROKERS:
        services[name].await_health()
    services["topics"].complete()
    job = services["spark"]
    job.start()
    wait_until(lambda: topics(compose).get("orders") == [3, 3, 3], "three replicas in sync", 300)

    admin = AdminClient({"bootstrap.servers": bootstrap(compose, OUTSIDE[:1]), "log_level": 0})

    def told() -> set[tuple[str, int]]:
        return {(each.host, each.port) for each in admin.list_topics(timeout=60).brokers.values()}

    addresses = {(HERE, compose.published_port(port)) for port in OUTSIDE}
    wait_until(lambda: told() == addresses, "one broker to tell of all")
    producer = Producer({"bootstrap.servers": bootstrap(compose), "acks": "all"})
    for number, value in enumerate(VALUES):
        producer.produce("orders", value, b"%d" % (number % 50))
    assert producer.flush(60) == 0

    def ready() -> bool:
        assert job.process is not None
        assert job.process.poll() is None, job.output()
        return all("orders-wide" in topics(compose, (port,)) for port in OUTSIDE)

    wait_until(ready, "the job's topic at every broker", 300)  # each hears of it for itself
    wait_until(lambda: copied(compose) == Counter(VALUES), "all orders to be copied", 300)
    # a replica that a busy machine held up comes back
    wait_until(lambda: topics(compose)["orders-wide"] == [3] * 6, "all replicas of the copy in sync", 300)
    assert job.stop() == 0, job.output()
    assert "asked to stop: ends after this batch" in job.output()
    for name in BROKERS:
        services[name].await_health()  # Docker asks several times, too, before it says no
    for name in BROKERS:
        assert services[name].stop() == 0, services[name].output()


def test_what_has_to_last_is_in_the_volumes(services: dict[str, Service]) -> None:
    """After the test above: the brokers' logs, the job's checkpoint; the images are as they were made."""
    for name in BROKERS:
        (volume,) = services[name].volumes.values()
        assert {path.name for path in (volume / "data").glob("orders-[0-2]")} == {
            f"orders-{n}" for n in range(3)
        }
    (volume,) = services["spark"].volumes.values()
    assert list((volume / "orders-wide" / "commits").glob("[0-9]*"))
    for service in services.values():
        assert isinstance(service.image.place("/opt/ottla"), Path)
