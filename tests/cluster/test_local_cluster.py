"""`make cluster`: what it starts, and that nothing is left of it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

from tests.support.ottla_process import CHECKOUT
from tests.support.ports import free_port
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.xdist_group("cluster")


def test_three_brokers_that_know_each_other_and_end_together() -> None:
    ports = [free_port() for _ in range(3)]
    command = [sys.executable, "-m", "tests.support.local_cluster", *map(str, ports)]
    process = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        assert lines[4].startswith(f"Try it: ottla topics --bootstrap-server 127.0.0.1:{ports[0]},")
        for port in ports:
            with WireClient(f"127.0.0.1:{port}") as client:
                assert sorted(broker.port for broker in client.metadata().brokers) == sorted(ports)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    assert process.returncode == 0
    for port in ports:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), 1)
