"""`ottla serve --brokers N` as a process, and the brokers that it has started.

    with SeveralBrokers(3) as brokers:
        os.kill(brokers.pid_of(2), signal.SIGKILL)
        brokers.await_starts(2, 2)

What OttlaProcess says of a process goes for the supervisor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.support.ottla_process import OttlaProcess
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

TIMEOUT_S = 120.0


class SeveralBrokers(OttlaProcess):
    """Brokers 1 to `count`, on ports in a row."""

    def __init__(
        self, count: int, overrides: Mapping[str, str] | None = None, directory: Path | None = None
    ) -> None:
        super().__init__(overrides, directory)
        self.count = count
        self.port = free_ports(count)
        self.start_timeout_s = self.stop_timeout_s = TIMEOUT_S
        self.ready_line = re.compile(rb"Try it: .*")

    @property
    def addresses(self) -> list[str]:
        return [f"{self.host}:{self.port + index}" for index in range(self.count)]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self.addresses)

    def command(self) -> list[str]:
        return [*super().command(), "--brokers", str(self.count)]

    def pid_of(self, node_id: int) -> int:
        """The process of a broker, the newest one."""
        return int(re.findall(rf"Broker {node_id} is process (\d+)", self.output())[-1])

    def starts(self, node_id: int) -> int:
        """How often a broker has come to serve."""
        return self.output().count(f"[KafkaServer id={node_id}] started")

    def await_starts(self, node_id: int, count: int) -> None:
        wait_until(lambda: self.starts(node_id) >= count, f"broker {node_id} to serve again", TIMEOUT_S)

    def stops(self) -> list[int]:
        """How often each broker has stopped in good order."""
        said = self.output()
        ids = range(1, self.count + 1)
        return [said.count(f"[KafkaServer id={node_id}] shut down completed") for node_id in ids]
