"""Free TCP ports on 127.0.0.1 for processes that can't be told to take any (Apache Kafka).

A port is free when it is handed out and could be taken before its user binds it. Each xdist worker therefore
draws from a range of its own, below the range the system hands out for outgoing connections.
"""

from __future__ import annotations

import itertools
import os
import socket

FIRST_PORT = 20_000
PORTS_PER_WORKER = 500

_counter = itertools.count()


def free_port() -> int:
    """A port that nothing listens on and that this process has not handed out lately."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST_PORT + worker % 20 * PORTS_PER_WORKER
    start = os.getpid()  # so that two runs on one machine seldom try the same ports
    for _ in range(PORTS_PER_WORKER):
        port = first + (start * 7 + next(_counter)) % PORTS_PER_WORKER
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port between {first} and {first + PORTS_PER_WORKER}")


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nothing listens on."""
    in_a_row = [free_port()]
    for _ in range(PORTS_PER_WORKER):
        if len(in_a_row) == count:
            return in_a_row[0]
        port = free_port()
        in_a_row = [*in_a_row, port] if port == in_a_row[-1] + 1 else [port]
    raise RuntimeError(f"no {count} free ports in a row")
