"""`ottla serve --brokers N`: a cluster without ZooKeeper under one command."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from ottla.client import KafkaClient
from tests.cluster.load import Load, check
from tests.support.several_brokers import SeveralBrokers
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.xdist_group("cluster")

TOPIC = "t"
SETTINGS = {
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


def create_topics(brokers: SeveralBrokers) -> None:
    """The one of the load, and one through each broker: only one of them is the controller."""
    for name, address in zip((TOPIC, "u", "v"), brokers.addresses, strict=True):
        with KafkaClient(address) as client:
            client.create_topic(name, 3, 3)


def in_sync(address: str) -> list[list[int]]:
    """The replicas in sync of each partition with a leader, as one broker sees them."""
    with WireClient(address) as client:
        [topic] = client.metadata(TOPIC).topics
    return [sorted(each.isr_nodes) for each in topic.partitions if each.leader_id >= 0]


def await_full_isr(brokers: SeveralBrokers) -> None:
    wait_until(
        lambda: all(in_sync(address) == [[1, 2, 3]] * 3 for address in brokers.addresses),
        "all replicas to be in sync",
    )


def await_more(load: Load, count: int) -> None:
    wanted = load.acks() + count
    wait_until(lambda: load.acks() >= wanted, f"{count} more acknowledged records")


def is_served(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


def closed_cleanly(brokers: SeveralBrokers) -> list[bool]:
    return [
        (brokers.log_dir / f"broker_{node_id}" / ".kafka_cleanshutdown").exists() for node_id in (1, 2, 3)
    ]


def test_one_dies_one_is_stopped_all_stop_and_all_are_orphaned() -> None:
    with SeveralBrokers(3, SETTINGS) as brokers:
        assert f"topics --bootstrap-server {brokers.bootstrap_servers} --create" in brokers.output()
        create_topics(brokers)  # at once: the line above says that each broker knows of all
        with Load(brokers.bootstrap_servers, TOPIC) as load:
            await_more(load, 100)
            os.kill(brokers.pid_of(2), signal.SIGKILL)
            await_more(load, 500)
            brokers.await_starts(2, 2)
            await_full_isr(brokers)
            os.kill(brokers.pid_of(3), signal.SIGTERM)
            brokers.await_starts(3, 2)
            await_full_isr(brokers)
        assert not load.failed
        assert "Broker 2 was killed by signal 9; it is started again" in brokers.output()
        assert "Broker 3 ended with exit code 0; it is started again" in brokers.output()
        assert "[broker 3] " in brokers.output()
        assert "Controlled shutdown request returned successfully" in brokers.output()

        before = len(brokers.output())
        assert brokers.stop() == 0
        assert not any(map(is_served, brokers.addresses))
        assert closed_cleanly(brokers) == [True] * 3
        last_words = brokers.output()[before:]
        assert "went: [" not in last_words  # nobody elects leaders for the others, who go as well
        assert "ontrolled shutdown" not in last_words
        assert "Traceback" not in brokers.output()

        brokers.start()
        await_full_isr(brokers)
        check(load, brokers.bootstrap_servers)
        stops = brokers.stops()
        brokers.kill()
        wait_until(
            lambda: brokers.stops() == [count + 1 for count in stops], "brokers without parent to stop", 60
        )
        wait_until(lambda: not any(map(is_served, brokers.addresses)), "the ports to be free")
        assert closed_cleanly(brokers) == [True] * 3


def test_ctrl_c_ends_all_with_0() -> None:
    with SeveralBrokers(2) as brokers:
        process = brokers.process
        assert process is not None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert brokers.stops() == [1, 1]


def test_a_port_that_is_taken_ends_all_with_a_plain_line() -> None:
    brokers = SeveralBrokers(2)
    taken = socket.create_server((brokers.host, brokers.port + 1))
    with taken, pytest.raises(RuntimeError, match="exit code 1"):
        brokers.start()
    output = brokers.output()
    assert f"Listener PLAINTEXT://{brokers.host}:{brokers.port + 1} cannot be opened" in output
    assert "Broker 2 cannot start" in output
    assert "Traceback" not in output
    assert not is_served(brokers.addresses[0])
    brokers.__exit__(None, None, None)
