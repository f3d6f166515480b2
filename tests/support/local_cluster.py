"""`make cluster`: a ZooKeeper and three brokers on this machine, for somebody who wants to try one.

The brokers listen on ports 9092 to 9094 of 127.0.0.1, or on those that are given. All of it lies in a
temporary directory, and is gone with Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.cluster_process import await_acquaintance
from tests.support.ottla_process import OttlaProcess
from tests.support.zookeeper_process import ZookeeperProcess

PORTS = (9092, 9093, 9094)


def brokers(zookeeper: str, directory: Path, ports: Sequence[int]) -> list[OttlaProcess]:
    """The brokers, not started yet."""
    made = []
    for number, port in enumerate(ports, 1):
        settings = {
            "broker.id": str(number),
            "zookeeper.connect": f"{zookeeper}/ottla",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
        }
        broker = OttlaProcess(settings, directory / f"broker-{number}")
        broker.port = port
        made.append(broker)
    return made


def main(ports: Sequence[int]) -> None:
    """Until SIGINT or SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with ZookeeperProcess() as zookeeper, TemporaryDirectory(prefix="ottla-cluster-") as directory:
        started: list[OttlaProcess] = []
        try:
            for broker in brokers(zookeeper.address, Path(directory), ports):
                started.append(broker)
                broker.start()
                number = broker.overrides["broker.id"]
                print(f"broker {number}: {broker.bootstrap_servers}, its log is {broker.output_path}")
            await_acquaintance(started)
            addresses = ",".join(broker.bootstrap_servers for broker in started)
            print(f"ZooKeeper: {zookeeper.address}")
            command = f"ottla topics --bootstrap-server {addresses} --create --topic hello"
            print(f"Try it: {command}", flush=True)
            ended.wait()
        finally:
            for broker in started:
                broker.stop()


if __name__ == "__main__":
    main([int(port) for port in sys.argv[1:]] or PORTS)
