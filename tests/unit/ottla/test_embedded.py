"""EmbeddedBroker as a user's program sees it: a real child interpreter, clients of other makes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys

import pytest

from ottla import BrokerFailed, EmbeddedBroker
from ottla.embedded import property_text
from tests.support.waiting import wait_until


def accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 1).close()
    except OSError:
        return False
    return True


def test_it_is_ready_when_the_context_opens_and_gone_when_it_closes() -> None:
    with EmbeddedBroker() as broker:
        assert accepts(broker.bootstrap_servers)
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        folder = broker.data_dir
        assert folder.is_dir()
    assert not accepts(broker.bootstrap_servers)
    assert broker.pid is None
    assert not folder.parent.exists()


def test_it_is_an_asynchronous_context_too() -> None:
    async def use() -> tuple[str, bool]:
        async with EmbeddedBroker() as broker:
            return broker.bootstrap_servers, accepts(broker.bootstrap_servers)

    address, accepted = asyncio.run(use())
    assert accepted
    assert not accepts(address)


def test_a_given_directory_stays_and_a_second_broker_finds_its_topics(tmp_path) -> None:
    with EmbeddedBroker(tmp_path / "kept") as broker:
        broker.create_topic("orders", partitions=2, config={"retention.ms": 1000})
    assert (tmp_path / "kept" / "orders-1").is_dir()
    with EmbeddedBroker(tmp_path / "kept") as broker, pytest.raises(BrokerFailed, match="already exists"):
        broker.create_topic("orders")


def test_after_a_kill_it_starts_again_at_the_same_address_with_its_topics() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("orders")
        address = broker.bootstrap_servers
        broker.kill()
        assert not accepts(address)
        broker.start()
        assert broker.bootstrap_servers == address
        broker.delete_topic("orders")
        with pytest.raises(BrokerFailed, match="orders"):
            broker.delete_topic("orders")


def test_overrides_reach_the_broker() -> None:
    with EmbeddedBroker(overrides={"num.partitions": 3, "auto.create.topics.enable": True}) as broker:
        broker.create_topic("orders", partitions=-1)
        assert sorted(path.name for path in broker.data_dir.glob("orders-*")) == [
            "orders-0",
            "orders-1",
            "orders-2",
        ]


def test_a_refused_start_says_why_and_leaves_nothing_running() -> None:
    broker = EmbeddedBroker(overrides={"num.partitions": "many"})
    with pytest.raises(BrokerFailed, match=r"exit code 1(?s:.*)num\.partitions"), broker:
        pass
    assert broker.pid is None
    broker.close()


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path) -> None:
    with EmbeddedBroker(tmp_path), pytest.raises(BrokerFailed, match="exit code 1"), EmbeddedBroker(tmp_path):
        pass


def test_it_does_not_outlive_a_program_that_is_killed(tmp_path) -> None:
    code = (
        "import sys, ottla\n"
        f"broker = ottla.EmbeddedBroker({str(tmp_path)!r})\n"
        "broker.start()\n"
        "print(broker.bootstrap_servers, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        address = program.stdout.readline().strip()
        assert accepts(address)
        os.kill(program.pid, signal.SIGKILL)
        wait_until(lambda: not accepts(address), "the broker to end")
    wait_until(lambda: (tmp_path / ".kafka_cleanshutdown").exists(), "the broker to close its logs")


def test_before_the_first_start_there_is_no_address() -> None:
    with pytest.raises(BrokerFailed, match=r"start\(\) first"):
        _ = EmbeddedBroker().bootstrap_servers
    assert EmbeddedBroker(port=19999).bootstrap_servers == "127.0.0.1:19999"


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (7, "7"), (["a", 1], "a,1"), ("x", "x")]
)
def test_python_values_become_property_values(value, text) -> None:
    assert property_text(value) == text
